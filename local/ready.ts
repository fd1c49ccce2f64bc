/**
 * The child's side of a service process: says its port once it answers, ends on SIGTERM, and ends when whoever started it is gone, even by
 * SIGKILL, so that nothing is ever left running.
 */

export function reportReady(port: number, close: () => Promise<void>): void {
  const end = (): void => {
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', end);
  process.once('SIGINT', end);
  if (process.send === undefined) {
    console.log(`listening on 127.0.0.1:${port}`);
    return;
  }
  process.once('disconnect', end);
  process.send({ port });
}
