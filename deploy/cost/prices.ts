/**
 * What AWS takes, in US dollars: on-demand list prices of us-east-1, without free tiers. Each can be given otherwise
 * (`--price publicIpv4Hour=0.004`); AWS's own pages are what counts.
 */
export const prices = {
  fargateArmVcpuHour: 0.03238,
  fargateArmGigabyteHour: 0.00356,
  publicIpv4Hour: 0.005,
  lambdaArmGigabyteSecond: 0.0000133334,
  lambdaMillionRequests: 0.2,
  dynamodbMillionWriteUnits: 0.625,
  dynamodbMillionReadUnits: 0.125,
  dynamodbWriteCapacityHour: 0.00065,
  dynamodbReadCapacityHour: 0.00013,
  sqsMillionRequests: 0.4,
  cloudwatchAlarmMonth: 0.1,
  cloudwatchMetricMonth: 0.3,
  cloudwatchThousandPuts: 0.01,
  logsGigabyte: 0.5,
  ecrGigabyteMonth: 0.1,
  kmsTenThousandRequests: 0.03,
} as const;

export type Prices = Record<keyof typeof prices, number>;

/** @param given `name=value` @throws Error for what isn't a price */
export function withGiven(given: string[]): Prices {
  const all: Prices = { ...prices };
  for (const one of given) {
    const [name = '', value = ''] = one.split('=');
    if (!(name in prices))
      throw new Error(`there is no price ${name}; these there are: ${Object.keys(prices).join(', ')}`);
    if (value.trim() === '' || !(Number(value) >= 0)) throw new Error(`--price ${one}: must be a number`);
    all[name as keyof Prices] = Number(value);
  }
  return all;
}
