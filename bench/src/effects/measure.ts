/**
 * Measures every subject of a workload in turns, each time in a fresh process, which repeats the workload for a while.
 */
import { measuredBy } from "../rounds.ts";
import { median } from "../timing.ts";
import type { Sample } from "./subject.ts";
import type { Workload } from "./workload.ts";

export interface Figure {
  readonly workload: string;
  readonly subject: string;
  readonly unit: "ns per step" | "bytes per task";
  /** The least processor time (or bytes) of all rounds, and the least wall time. */
  readonly least: number;
  readonly median: number;
  readonly most: number;
  readonly leastWall: number;
}

const SUBJECT = new URL("./subject.js", import.meta.url);
const FLAGS = ["--expose-gc", "--max-old-space-size=8192"];
const allSubjects = ["slotkeeper", "promises", "effect"];

export async function measureAll(workload: Workload, rounds: number, isShort: boolean): Promise<Figure[]> {
  const budgetMs = isShort ? 800 : 3_000;
  const subjects = allSubjects.filter((subject) => workload.without?.[subject] === undefined);
  const samples = new Map(subjects.map((subject) => [subject, [] as Sample[]]));
  for (let round = 0; round < rounds; round++) {
    for (const [subject, own] of samples) {
      const args = [subject, workload.name, isShort ? "short" : "long", String(budgetMs)];
      own.push(await measuredBy<Sample>(SUBJECT, args, FLAGS));
    }
  }
  return [...samples].map(([subject, own]) => figureOf(workload, subject, own));
}

function figureOf(workload: Workload, subject: string, samples: readonly Sample[]): Figure {
  const cpu = samples.map((sample) => sample.cpu);
  return {
    workload: workload.name,
    subject,
    unit: workload.program === "parked" ? "bytes per task" : "ns per step",
    least: Math.min(...cpu),
    median: median(cpu),
    most: Math.max(...cpu),
    leastWall: Math.min(...samples.map((sample) => sample.wall)),
  };
}
