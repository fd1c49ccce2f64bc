import pino from 'pino';

export type Fields = Record<string, unknown>;

/**
 * Structured logs: one JSON object a line. An event is `noun.verb`; ids are fields, never part of the text.
 * URLs are never logged whole: their query may hold a token.
 */
export type Log = {
  debug(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
  /** A log that adds these fields to each line. */
  with(fields: Fields): Log;
};

export const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/**
 * @param fields on every line, e.g. the service
 * @param changing the same, for what may change while the process runs, e.g. the worker id
 */
export function createLog(level: (typeof logLevels)[number], fields: Fields, changing: () => Fields = () => ({})): Log {
  return wrap(
    pino({
      level,
      base: fields,
      mixin: changing,
      messageKey: 'event',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    }),
  );
}

function wrap(logger: pino.Logger): Log {
  return {
    debug: (event, fields = {}) => logger.debug(fields, event),
    info: (event, fields = {}) => logger.info(fields, event),
    warn: (event, fields = {}) => logger.warn(fields, event),
    error: (event, fields = {}) => logger.error(fields, event),
    with: (fields) => wrap(logger.child(fields)),
  };
}
