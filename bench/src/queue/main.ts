/**
 * Compares the cost of one cycle (acquire and release) of the engine on the memory store, without HTTP, with other
 * checkouts: `node bench/dist/queue/main.js [--against FOLDER]… [--short] [--rounds N] [--only idle,new-host]`. A
 * folder is a checkout with a build. Subjects take turns, each in a fresh process. The figures are medians, with lowest
 * and highest.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { rotated } from "../harness.ts";
import { measuredBy, roundsOf } from "../rounds.ts";
import { median } from "../timing.ts";

const { values } = parseArgs({
  options: {
    against: { type: "string", multiple: true, default: [] },
    short: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string", default: "idle,contended,free,new-host" },
  },
});

const CHILD = new URL("child.js", import.meta.url);
const subjects = [...values.against, fileURLToPath(new URL("../../..", import.meta.url))];
const rounds = roundsOf(values.rounds, values.short, 7);
const flags = values.short ? ["--short"] : [];

async function measure(workload: string): Promise<Map<string, number[]>> {
  const costs = new Map<string, number[]>(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < rounds; round++) {
    for (const subject of rotated(subjects, round)) {
      const { ns } = await measuredBy<{ ns: number }>(CHILD, [subject, workload, ...flags]);
      costs.get(subject)?.push(ns / 1000);
    }
  }
  return costs;
}

for (const workload of values.only.split(",")) {
  const costs = await measure(workload);
  const base = median(costs.get(subjects[0] ?? "") ?? []);
  for (const [subject, values] of costs) {
    const [low, high] = [Math.min(...values).toFixed(1), Math.max(...values).toFixed(1)];
    const ratio = (median(values) / base).toFixed(2);
    console.log(
      `${workload.padEnd(10)} ${median(values).toFixed(1).padStart(6)} µs (${low}–${high}) ${ratio} × ${subject}`,
    );
  }
}
