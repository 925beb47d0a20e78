/**
 * Row E1: steps per second of `slotkeeper/effects` against Effect's fibers and plain promises, 1,000,000 tasks over one
 * semaphore, and the memory of a parked task. Subjects take turns round by round, each in a fresh process; the figures
 * are medians over the rounds, with the spread. `node bench/dist/effects/main.js [--short]`
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Workload, workloads } from "./workload.ts";

interface Figure {
  readonly workload: string;
  readonly subject: string;
  readonly unit: "ns per step" | "bytes per task";
  readonly median: number;
  readonly low: number;
  readonly high: number;
  /** How many times as much as Slotkeeper takes. */
  readonly ratio: number;
}

const isShort = process.argv.includes("--short");
const allSubjects = ["slotkeeper", "effect", "promises"];
const rounds = isShort ? 5 : 7;

function measure(subject: string, workload: string): number {
  const script = fileURLToPath(new URL("./subject.js", import.meta.url));
  const flags = ["--expose-gc", "--max-old-space-size=8192"];
  const args = [...flags, script, subject, workload, isShort ? "short" : "long"];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as number;
}

function measureAll(workload: Workload): Figure[] {
  const subjects = allSubjects.filter((subject) => workload.without?.[subject] === undefined);
  const figures = new Map(subjects.map((subject) => [subject, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    for (const subject of subjects) figures.get(subject)?.push(measure(subject, workload.name));
  }
  const ours = median(figures.get("slotkeeper") ?? []);
  return subjects.map((subject) => {
    const sorted = (figures.get(subject) ?? []).toSorted((a, b) => a - b);
    return {
      workload: workload.name,
      subject,
      unit: workload.program === "parked" ? "bytes per task" : "ns per step",
      median: median(sorted),
      low: sorted[0] ?? Number.NaN,
      high: sorted.at(-1) ?? Number.NaN,
      ratio: median(sorted) / ours,
    };
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function print(workload: Workload, figures: readonly Figure[]): void {
  console.log(`\n${workload.name}: ${workload.what}`);
  for (const { subject, unit, median: middle, low, high, ratio } of figures) {
    const perSecond = unit === "ns per step" ? `${(1_000 / middle).toFixed(2)} M steps/s` : "";
    const columns = [
      subject.padEnd(12),
      `${middle.toFixed(0)} ${unit}`.padStart(20),
      `${low.toFixed(0)}–${high.toFixed(0)}`,
    ];
    console.log(`  ${columns.join("  ")}  ${perSecond.padStart(16)}  × ${ratio.toFixed(2)}`);
  }
}

function printLeftOut({ without = {} }: Workload): void {
  for (const [subject, reason] of Object.entries(without)) console.log(`  ${subject.padEnd(12)}  left out: ${reason}`);
}

const all: Figure[] = [];
for (const workload of workloads(isShort)) {
  const figures = measureAll(workload);
  print(workload, figures);
  printLeftOut(workload);
  all.push(...figures);
}
const results = fileURLToPath(new URL("../../results/", import.meta.url));
mkdirSync(results, { recursive: true });
writeFileSync(
  `${results}effects.json`,
  `${JSON.stringify({ isShort, rounds, node: process.version, figures: all }, null, 2)}\n`,
);
console.log(
  `\n× is how many times as much as Slotkeeper takes. Medians of ${rounds} rounds; written to bench/results/effects.json`,
);
