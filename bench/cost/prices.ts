/**
 * Dollars, as a parameter: prices differ by region and change. The defaults are AWS's list prices for us-east-1 without any
 * free tier, as read in September 2026 (DynamoDB, Lambda) and March to June 2026 (SQS); CloudWatch's have stood for years.
 */
import { parseArgs } from 'node:util';

export type Prices = {
  /**
   * A million write and a million read request units, Standard table class. Source: "Amazon DynamoDB pricing for on-demand
   * capacity", since the halving of November 1, 2024; the price list of September 2026 has the same.
   */
  write: number;
  read: number;
  /** A million requests to a standard queue; an empty long poll is one, a batch is one up to 64 KB. Source: "Amazon SQS pricing". */
  sqs: number;
  /** A thousand PutMetricData requests. Source: "Amazon CloudWatch pricing", APIs. */
  putMetric: number;
  /** One custom metric for a month, of the first ten thousand. Source: "Amazon CloudWatch pricing", metrics. */
  metric: number;
  /** A GB-second on Arm, of the first 7.5 billion, and a million invocations. Source: "AWS Lambda pricing". */
  lambdaSecond: number;
  lambdaRequests: number;
};

export const listPrices: Prices = {
  write: 0.625,
  read: 0.125,
  sqs: 0.4,
  putMetric: 0.01,
  metric: 0.3,
  lambdaSecond: 0.0000133334,
  lambdaRequests: 0.2,
};

/** As AWS's own pricing calculator has it. */
export const hoursPerMonth = 730;

/** Of serverless.yml: functionMemory in deploy/parameters.yml. */
export const lambdaGigabytes = 0.25;

/** `--price-write 1.25` and so on. */
export const priceOptions = {
  'price-write': { type: 'string' },
  'price-read': { type: 'string' },
  'price-sqs': { type: 'string' },
  'price-put-metric': { type: 'string' },
  'price-metric': { type: 'string' },
  'price-lambda-second': { type: 'string' },
  'price-lambda-requests': { type: 'string' },
} as const;

type Given = ReturnType<typeof parseArgs<{ options: typeof priceOptions }>>['values'];

export function pricesOf(given: Given): Prices {
  const price = (name: keyof Given, fallback: number): number => {
    const text = given[name];
    const value = text === undefined ? fallback : Number(text);
    if (!Number.isFinite(value) || value < 0) throw new Error(`--${name} must be a price in dollars, not ${text}`);
    return value;
  };
  return {
    write: price('price-write', listPrices.write),
    read: price('price-read', listPrices.read),
    sqs: price('price-sqs', listPrices.sqs),
    putMetric: price('price-put-metric', listPrices.putMetric),
    metric: price('price-metric', listPrices.metric),
    lambdaSecond: price('price-lambda-second', listPrices.lambdaSecond),
    lambdaRequests: price('price-lambda-requests', listPrices.lambdaRequests),
  };
}
