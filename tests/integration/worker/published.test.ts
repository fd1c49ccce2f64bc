/** The same suites with the setting of the published design: no worker lease, a short lease for each connection. */
process.env['WORKER_LEASE'] = 'off';
await import('./claim.test.ts');
await import('./holding.test.ts');
await import('./owned.test.ts');

export {};
