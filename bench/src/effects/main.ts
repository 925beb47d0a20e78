/**
 * Row E1: steps per second of `slotkeeper/effects` against Effect's fibers and plain promises, 1,000,000 tasks over one
 * semaphore, and the memory of a parked task. Subjects take turns round by round, each in a fresh process, which repeats
 * the workload for a fixed time. Compared is the least processor time: other programs on the machine stretch wall time,
 * and they do not stretch it evenly. The short run leaves Effect little time to warm up, so it flatters us there. `node bench/dist/effects/main.js [--short]`
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { goals, type Verdict, verdictOf } from "./goals.ts";
import type { Sample } from "./subject.ts";
import { type Workload, workloads } from "./workload.ts";

interface Figure {
  readonly workload: string;
  readonly subject: string;
  readonly unit: "ns per step" | "bytes per task";
  /** Processor time (or bytes): least, median and most over the rounds; and the least wall time. */
  readonly least: number;
  readonly median: number;
  readonly most: number;
  readonly leastWall: number;
}

const isShort = process.argv.includes("--short");
const allSubjects = ["slotkeeper", "promises", "effect"];
const budgetMs = isShort ? 400 : 3_000;

function roundsOf({ program }: Workload): number {
  if (program === "parked") return 1;
  if (isShort) return program === "crowd" ? 3 : 5;
  return 7;
}

function measure(subject: string, workload: string): Sample {
  const script = fileURLToPath(new URL("./subject.js", import.meta.url));
  const flags = ["--expose-gc", "--max-old-space-size=8192"];
  const args = [...flags, script, subject, workload, isShort ? "short" : "long", String(budgetMs)];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8" })) as Sample;
}

function measureAll(workload: Workload): Figure[] {
  const subjects = allSubjects.filter((subject) => workload.without?.[subject] === undefined);
  const samples = new Map(subjects.map((subject) => [subject, [] as Sample[]]));
  for (let round = 0; round < roundsOf(workload); round++) {
    for (const subject of subjects) samples.get(subject)?.push(measure(subject, workload.name));
  }
  return [...samples].map(([subject, all]) => figureOf(workload, subject, all));
}

function figureOf(workload: Workload, subject: string, samples: readonly Sample[]): Figure {
  const cpu = samples.map((sample) => sample.cpu).toSorted((a, b) => a - b);
  return {
    workload: workload.name,
    subject,
    unit: workload.program === "parked" ? "bytes per task" : "ns per step",
    least: cpu[0] ?? Number.NaN,
    median: cpu[Math.floor(cpu.length / 2)] ?? Number.NaN,
    most: cpu.at(-1) ?? Number.NaN,
    leastWall: Math.min(...samples.map((sample) => sample.wall)),
  };
}

function print(workload: Workload, figures: readonly Figure[]): void {
  console.log(`\n${workload.name}: ${workload.what}`);
  const ours = figures.find(({ subject }) => subject === "slotkeeper")?.least ?? Number.NaN;
  for (const { subject, unit, least, median, most, leastWall } of figures) {
    const columns = [
      subject.padEnd(12),
      `${least.toFixed(0)} ${unit}`.padStart(20),
      `median ${median.toFixed(0)}, most ${most.toFixed(0)}`,
      unit === "ns per step" ? `wall ${leastWall.toFixed(0)}` : "",
      `× ${(least / ours).toFixed(2)}`,
    ];
    console.log(`  ${columns.join("  ")}`);
  }
  for (const [subject, reason] of Object.entries(workload.without ?? {})) {
    console.log(`  ${subject.padEnd(12)}  left out: ${reason}`);
  }
}

function save(figures: readonly Figure[], verdicts: readonly Verdict[]): void {
  const results = fileURLToPath(new URL("../../results/", import.meta.url));
  mkdirSync(results, { recursive: true });
  const report = { isShort, node: process.version, figures, verdicts };
  writeFileSync(`${results}effects.json`, `${JSON.stringify(report, null, 2)}\n`);
}

const figures: Figure[] = [];
for (const workload of workloads(isShort)) {
  const measured = measureAll(workload);
  print(workload, measured);
  figures.push(...measured);
}
const verdicts = goals.map((goal) => verdictOf(goal, figures));
console.log("\nGoals of row E1, by least processor time:");
for (const { goal, ratio, isMet } of verdicts) {
  const { workload, against, atLeast } = goal;
  const verdict = isMet ? "met" : "MISSED";
  console.log(`  ${workload.padEnd(10)} ≥ ${atLeast} × ${against.padEnd(9)} ${ratio.toFixed(2)} ×  ${verdict}`);
}
save(figures, verdicts);
console.log("\n× is how many times as much as Slotkeeper takes. Written to bench/results/effects.json");
