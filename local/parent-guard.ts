/**
 * Preloaded (`node --import`) into children that know nothing of this folder, such as a worker: ends them when whoever started them is
 * gone, even by SIGKILL. It doesn't keep the process alive.
 */
process.once('disconnect', () => process.exit(1));
process.channel?.unref();
