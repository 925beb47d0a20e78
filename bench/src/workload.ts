import type { Goal } from "./goals.ts";
import type { Subject } from "./subject.ts";

/** The result of one process: the cost of one operation, and counts that belong to it (timers, remaining bytes). */
export interface Measurement {
  readonly value: number;
  readonly extra?: Readonly<Record<string, number>>;
}

/** One row of the table: a workload at one size. */
export interface Case {
  /** Unique and without spaces, because it is a command-line argument. Begins with the id of the workload. */
  readonly id: string;
  readonly title: string;
  readonly unit: "ns" | "B";
  /** Which note of a subject belongs to this row. */
  readonly noteKey: string;
  /** What the cheapest JavaScript for the job does, as text; `undefined` if the row has no limit. */
  readonly limitTitle?: string;
  readonly limit?: Subject;
  /** Further references, shown beside the limit; not peers. */
  readonly yardsticks?: readonly Subject[];
  /** Why the peers are left out, in rows that only show how our cost grows with size. */
  readonly peersLeftOut?: string;
  readonly needsGc?: boolean;
  /** Why the subject cannot take part. */
  absence(subject: Subject): string | undefined;
  /** Checks that the subject does what the row is about, and throws if not. Not timed. */
  check?(subject: Subject): Promise<void>;
  measure(subject: Subject, isShort: boolean): Promise<Measurement>;
  readonly goals: readonly Goal[];
}

export interface Workload {
  readonly id: string;
  readonly cases: readonly Case[];
}

/** The limit first. */
export const yardsticksOf = (chosen: Case): readonly Subject[] => [
  ...(chosen.limit === undefined ? [] : [chosen.limit]),
  ...(chosen.yardsticks ?? []),
];
