/**
 * `npm run bench:cost`: what a fleet asks of AWS in an hour, and what that costs, with the published setting and with two
 * levels of leases.
 *
 *   node bench/cost.ts [--markdown file] [--price-write 0.625] [--price-read 0.125] [--price-…]
 *
 * Exits with 0 only if the cost is as low as it must be.
 */
import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { dim, say, seconds } from '../local/console.ts';
import { type Measured, measure } from './cost/measure.ts';
import { priceOptions, pricesOf } from './cost/prices.ts';
import { costPage } from './cost/report.ts';
import { fewOnMany, type Load, type Size, settings, sizes } from './cost/settings.ts';
import { checksOf } from './cost/targets.ts';

const { values } = parseArgs({ options: { markdown: { type: 'string' }, ...priceOptions } });
const prices = pricesOf(values);

const measured: Measured[] = [];
for (const load of ['idle', 'messages'] as const) {
  for (const size of sizes) await measureBoth(load, size);
  if (load === 'idle') await measureBoth(load, fewOnMany);
}

const checks = checksOf(measured);
const page = costPage({ at: new Date().toISOString(), prices, measured, checks });
say(`\n${page}`);
if (values.markdown !== undefined) await writeFile(values.markdown, page);
// Workers in simulated time don't end by themselves.
process.exit(checks.every(({ reached }) => reached) ? 0 : 1);

async function measureBoth(load: Load, size: Size): Promise<void> {
  for (const setting of settings) {
    const startedAt = performance.now();
    measured.push(await measure(setting, load, size));
    const what = `${setting.name}, ${load}, ${size.connections} connections on ${size.workers} workers`;
    say(dim(`${what}: ${setting.windowMs / 60_000} min in ${seconds(performance.now() - startedAt)}`));
  }
}
