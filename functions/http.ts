import middy, { type MiddyfiedHandler, type Request } from '@middy/core';
import jsonBody from '@middy/http-json-body-parser';
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from 'aws-lambda';
import { type Config, readConfig } from '../shared/config.ts';
import { BrokenItemError, ConfigError, describe } from '../shared/errors.ts';
import { createLog, type Log } from '../shared/log.ts';
import { Refusal } from './refusal.ts';

/** One request, stripped of everything that API Gateway puts around it. */
export type Call = {
  /** Between the slashes of the path, as it came: API Gateway leaves it URL-encoded, others decode it. */
  path: Record<string, string | undefined>;
  query: Record<string, string | undefined>;
  /** Parsed, but not checked. undefined where the route takes none. */
  body: unknown;
  log: Log;
};

export type Reply = { status: number; body: unknown };

/** `GET /connections/{id}` -> what answers it */
export type Routes = Record<string, (call: Call) => Promise<Reply>>;

export type HttpHandler = MiddyfiedHandler<APIGatewayProxyEvent, APIGatewayProxyResult>;

type HttpRequest = Request<APIGatewayProxyEvent, APIGatewayProxyResult>;

/** A START takes a few hundred bytes; DynamoDB takes no item over 400 KB. */
const longestBody = 256 * 1024;

/**
 * The one stack of everything that answers over HTTP: JSON in and out, and each failure in the same form and in the log.
 * @param name  of the function, for the log
 * @param build called once per container, at its first request: a fault in it then is an answer and a line in the log,
 *              where it would be a crash if it ran while the module loads
 */
export function httpHandler(name: string, build: (config: Config, log: Log) => Routes): HttpHandler {
  let log = createLog('info', { service: 'holdfast', function: name });
  let routes: Routes | undefined;

  function routeOf(event: APIGatewayProxyEvent) {
    if (!routes) {
      const config = readConfig();
      log = createLog(config.logLevel, { service: config.serviceName, function: name });
      routes = build(config, log);
    }
    const route = routes[routeName(event)];
    if (!route) throw new Refusal(404, 'unknown_route', `there is no ${event.httpMethod} ${event.path}`);
    return route;
  }

  return middy<APIGatewayProxyEvent, APIGatewayProxyResult>()
    .before(({ event }: HttpRequest) => void routeOf(event))
    .before(({ event }: HttpRequest) => limitBody(event))
    .use({
      before(request: HttpRequest) {
        // `curl -d` calls what it sends a form. Nothing but JSON is taken here, so what it is called doesn't matter.
        if (takesBody(request.event)) jsonBody({ disableContentTypeCheck: true }).before?.(request);
      },
    })
    .onError((request: HttpRequest) => failed(request, log))
    .handler(async (event: APIGatewayProxyEvent, context: Context) => {
      const reply = await routeOf(event)({
        path: event.pathParameters ?? {},
        query: event.queryStringParameters ?? {},
        body: takesBody(event) ? event.body : undefined,
        log: log.with({ request_id: context.awsRequestId }),
      });
      return answer(reply.status, reply.body);
    });
}

const routeName = ({ httpMethod, resource }: APIGatewayProxyEvent): string => `${httpMethod} ${resource}`;

const takesBody = ({ httpMethod }: APIGatewayProxyEvent): boolean => httpMethod === 'POST';

function limitBody(event: APIGatewayProxyEvent): void {
  if (!takesBody(event)) return;
  if (event.body === null || event.body.trim() === '') {
    throw new Refusal(400, 'no_body', 'the request has no body; a JSON object is expected');
  }
  const bytes = Buffer.byteLength(event.body, event.isBase64Encoded ? 'base64' : 'utf8');
  if (bytes <= longestBody) return;
  throw new Refusal(413, 'too_large', `the body has ${bytes} bytes; ${longestBody} are the most that is taken`);
}

function failed({ error, context }: HttpRequest, log: Log): APIGatewayProxyResult {
  const request_id = context.awsRequestId;
  const refusal = refusalOf(error);
  if (refusal.status < 500) {
    // The fields, but not what stands in them: a URL may hold a token.
    const fields = refusal.problems.flatMap(({ field }) => field ?? []);
    log.info('request.refused', { request_id, status: refusal.status, code: refusal.code, fields });
  } else if (error instanceof ConfigError) {
    log.error('config.invalid', { request_id, problems: error.message.split('\n') });
  } else {
    const stack = error instanceof Refusal ? undefined : error?.stack;
    log.error('request.failed', { request_id, status: refusal.status, fault: describe(error), stack });
  }
  return answer(refusal.status, { error: { ...refusal.toJSON(), request_id } });
}

/** Anything that isn't said for the sender in so many words becomes a 500 without a word about what it was. */
function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof BrokenItemError) return new Refusal(500, 'broken_item', error.message);
  if (error instanceof Error && isUnreadableBody(error)) {
    const why = error.cause?.message ?? error.message;
    return new Refusal(400, 'not_json', `the body is not JSON: ${why}`);
  }
  return new Refusal(
    500,
    'internal',
    'this failed on the side of the service; it may have been applied or not, and sending it again is harmless',
  );
}

/** What the body parser throws. Its 422 says less to most people than a 400. */
function isUnreadableBody(error: Error): error is Error & { cause?: { message?: string } } {
  return 'statusCode' in error && error.statusCode === 422;
}

function answer(statusCode: number, body: unknown): APIGatewayProxyResult {
  return {
    statusCode,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      ...(statusCode === 503 ? { 'retry-after': '1' } : {}),
    },
    body: `${JSON.stringify(body)}\n`,
  };
}
