/**
 * `node bench/dist/transfers/main.js [--short] [--rounds N] [--json FILE]`
 *
 * Shows that one user's backlog of thousands of blocked requests does not change the waits of other users. Every row
 * runs in a fresh process per round, in turns. The figures are medians of the rounds, with their spread, and ratios to
 * the same subject without a backlog.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { measuredBy, roundsOf } from "../rounds.ts";
import { median } from "../timing.ts";
import type { Measurement } from "../workload.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    rounds: { type: "string" },
    json: { type: "string" },
  },
});

interface Row {
  readonly subject: string;
  readonly backlog: number;
  readonly samples: Measurement[];
}

const GOAL = 1.25;
const CHILD = new URL("child.js", import.meta.url);
const rounds = roundsOf(values.rounds, values.short, 7);

const row = (subject: string, backlog: number): Row => ({ subject, backlog, samples: [] });
const rows = [
  row("two tiers", 0),
  row("two tiers", 1000),
  row("two tiers", 10_000),
  row("one queue", 0),
  row("one queue", 1000),
];

for (let round = 0; round < rounds; round++) {
  for (let turn = 0; turn < rows.length; turn++) {
    const { subject, backlog, samples } = rows[(round + turn) % rows.length] as Row;
    process.stderr.write(`round ${round + 1}/${rounds}: ${subject}, backlog ${backlog}\n`);
    const args = [subject, String(backlog), ...(values.short ? ["--short"] : [])];
    samples.push(await measuredBy<Measurement>(CHILD, args, ["--expose-gc"]));
  }
}

const us = (ns: number): string => (ns / 1000).toFixed(1);
const figures = rows.map(({ subject, backlog, samples }) => {
  const waits = samples.map(({ value }) => value);
  const p99s = samples.map(({ extra }) => extra?.["p99"] ?? Number.NaN);
  return {
    subject,
    backlog,
    median: median(waits),
    min: Math.min(...waits),
    max: Math.max(...waits),
    p99: median(p99s),
  };
});
const results = figures.map((figure) => {
  const base = figures.find(({ subject, backlog }) => subject === figure.subject && backlog === 0) ?? figure;
  return { ...figure, ratio: figure.median / base.median, p99Ratio: figure.p99 / base.p99 };
});

console.log(
  `Node ${process.version}, medians of ${rounds} interleaved rounds in fresh processes${values.short ? ", short mode: no measurement" : ""}`,
);
console.log("Other users' wait for an upload slot, by the length of one user's backlog [µs]\n");
console.log(
  `${"".padEnd(12)}${"backlog".padStart(8)}${"median".padStart(10)}  ${"min..max".padEnd(20)}${"ratio".padStart(8)}${"p99".padStart(10)}${"ratio".padStart(8)}`,
);
for (const { subject, backlog, median, min, max, ratio, p99, p99Ratio } of results) {
  const spread = `${us(min)}..${us(max)}`;
  const ratios = `${ratio.toFixed(2).padStart(8)}${us(p99).padStart(10)}${p99Ratio.toFixed(2).padStart(8)}`;
  console.log(
    `${subject.padEnd(12)}${String(backlog).padStart(8)}${us(median).padStart(10)}  ${spread.padEnd(20)}${ratios}`,
  );
}
const worst = Math.max(...results.filter(({ subject }) => subject === "two tiers").map(({ ratio }) => ratio));
console.log(
  `\ngoal: two tiers, any backlog: median ≤ ${GOAL} × without    ${worst.toFixed(2)}    ${worst <= GOAL ? "reached" : "missed"}`,
);
if (values.json !== undefined)
  writeFileSync(values.json, `${JSON.stringify({ node: process.version, rounds, results }, undefined, 2)}\n`);
