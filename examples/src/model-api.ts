/**
 * An hour against a simulated model API, in virtual time: through a `Limiter`, and with p-limit and retries.
 *
 *   npm run build && node examples/dist/model-api.js [--seed 1] [--chart model-api.svg]
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { withLimiter, withRetries } from "./model-api/callers.ts";
import { drawChart } from "./model-api/chart.ts";
import { type Hour, simulateHour } from "./model-api/hour.ts";

const { values } = parseArgs({ options: { seed: { type: "string", default: "1" }, chart: { type: "string" } } });
const seed = Number(values.seed);

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`.padStart(9);

function print(name: string, { fixed, moving, refusedShare, unfairness }: Hour): void {
  console.log([name.padEnd(18), ...[fixed, moving, refusedShare, unfairness].map(percent)].join(" "));
}

console.log("                    fixed    moving   refused  unfair");
const limiter = await simulateHour(withLimiter, { seed });
print("Limiter", limiter);
const guesses = [25, 50, 100];
const retries: Hour[] = [];
for (const guess of guesses) {
  const hour = await simulateHour((clock, api) => withRetries(clock, api, guess), { seed });
  print(`p-limit(${guess}) + retry`, hour);
  retries.push(hour);
}
if (values.chart !== undefined) writeFileSync(values.chart, drawChart(limiter, retries.at(-1) as Hour));
