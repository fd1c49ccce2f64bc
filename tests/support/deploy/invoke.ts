/** Lambda, for one invocation, as a process of its own: `invoke.ts <module> <export>`, the event comes and the answer goes by IPC. */
import { pathToFileURL } from 'node:url';

const [module = '', name = 'handler'] = process.argv.slice(2);
const timeoutMs = 20_000;

process.once('message', (event: unknown) => {
  void answer(event).then((message) => process.send?.(message, () => process.exit(0)));
});

async function answer(event: unknown): Promise<{ value?: unknown; fault?: string; loadMs?: number }> {
  try {
    const startedMs = performance.now();
    const loaded = (await import(pathToFileURL(module).href)) as Record<
      string,
      (event: unknown, context: unknown) => unknown
    >;
    const loadMs = performance.now() - startedMs;
    const context = { awsRequestId: 'request-1', getRemainingTimeInMillis: () => timeoutMs - performance.now() };
    return { value: await loaded[name]?.(event, context), loadMs };
  } catch (fault) {
    return { fault: fault instanceof Error ? (fault.stack ?? fault.message) : String(fault) };
  }
}
