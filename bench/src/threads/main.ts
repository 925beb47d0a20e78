/**
 * Rows T1 and T2, and the lag of a waiting thread: `node bench/dist/threads/main.js [--short] [--rounds N]`.
 * Subjects take turns, each time in a fresh process. Prints a table, writes `bench/results/threads.json`.
 */
import { parseArgs } from "node:util";
import { keepResults, measuredBy, roundsOf } from "../rounds.ts";
import { median } from "../timing.ts";
import { subjects } from "./subjects.ts";

const { values } = parseArgs({ options: { short: { type: "boolean", default: false }, rounds: { type: "string" } } });
const rounds = roundsOf(values.rounds, values.short, 7);
const child = new URL("child.js", import.meta.url);
const samples = new Map<string, number[]>(Object.keys(subjects).map((id) => [id, []]));

for (let round = 0; round < rounds; round++) {
  for (const [id, { operations }] of Object.entries(subjects)) {
    const asked = values.short ? Math.ceil(operations / 10) : operations;
    samples.get(id)?.push(await measuredBy<number>(child, [id, String(asked)]));
  }
  process.stderr.write(`round ${round + 1} of ${rounds}\n`);
}

/**
 * The first subject of a row is its limit. The ratio is calculated round by round, so that a slow minute slows both.
 */
const results = Object.entries(subjects).map(([id, { row, label, unit }]) => {
  const own = samples.get(id) ?? [];
  const limitId = Object.keys(subjects).find((other) => subjects[other]?.row === row) ?? id;
  const ratios = own.map((value, round) => value / (samples.get(limitId)?.[round] ?? Number.NaN));
  return {
    id,
    row,
    label,
    unit,
    median: median(own),
    min: Math.min(...own),
    max: Math.max(...own),
    ratio: median(ratios),
  };
});

const number = (value: number) => value.toFixed(value < 100 ? 1 : 0).padStart(8);
console.log(
  `${"row".padEnd(5)}${"subject".padEnd(52)}${"median".padStart(8)}     ${"from".padStart(8)}${"to".padStart(8)}   ratio`,
);
for (const { row, label, unit, median: middle, min, max, ratio } of results) {
  console.log(
    `${row.padEnd(5)}${label.padEnd(52)}${number(middle)} ${unit}  ${number(min)}${number(max)}   ${ratio.toFixed(2)}`,
  );
}

const file = keepResults("threads", { rounds, results, samples: Object.fromEntries(samples) });
console.log(`\n${rounds} rounds; goals: T1 at most 3.00, T2 below 1.00. Written to ${file}`);
