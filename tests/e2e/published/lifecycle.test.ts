/** The same suite with the setting of the published design: no worker lease, a short lease for each connection. */
process.env['WORKER_LEASE'] = 'off';
await import('../lifecycle.test.ts');

export {};
