import { simulate } from './harness/simulation.ts';

const [from = '1', count = '20', trace = '', lease = 'on'] = process.argv.slice(2);
const t0 = performance.now();
let steps = 0,
  virtual = 0;
const faults: Record<string, number> = {};
for (let seed = Number(from); seed < Number(from) + Number(count); seed++) {
  const o = await simulate({ seed, trace: trace === 'trace', variant: undefined, workerLease: lease === 'on' });
  steps += o.steps;
  virtual += o.virtualMs;
  for (const [k, v] of Object.entries(o.faults)) faults[k] = (faults[k] ?? 0) + v;
  if (trace === 'trace') console.log(o.lines.join('\n'));
  if (o.violation) console.log(seed, o.violation, o.virtualMs);
  else if (Number(count) < 30)
    console.log(seed, 'ok', o.virtualMs, o.steps, 'settled', o.settledMs, 'messages', o.messages, o.hash);
}
const s = (performance.now() - t0) / 1000;
console.log(
  `${(Number(count) / s).toFixed(1)} seeds/s, ${(steps / s).toFixed(0)} steps/s, ${(virtual / 3600000).toFixed(2)} virtual hours`,
  faults,
);
