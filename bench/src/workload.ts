import type { Goal } from "./goals.ts";
import type { Subject } from "./subject.ts";

/** What one process reports: the cost of one operation, and counts that belong to it (timers, bytes left over). */
export interface Measurement {
  readonly value: number;
  readonly extra?: Readonly<Record<string, number>>;
}

/** One row of the table: a workload at one size. */
export interface Case {
  /** Unique, without blanks: a command-line argument. Begins with the workload's id. */
  readonly id: string;
  readonly title: string;
  readonly unit: "ns" | "B";
  /** Which note of a subject belongs to this row. */
  readonly noteKey: string;
  /** What the cheapest JavaScript for the job does, in words; undefined if the row has none. */
  readonly limitTitle?: string;
  readonly limit?: Subject;
  /** Further yardsticks, shown beside the limit; not peers. */
  readonly yardsticks?: readonly Subject[];
  /** Rows that only show how our cost grows with size leave the peers out, and say so. */
  readonly peersLeftOut?: string;
  readonly needsGc?: boolean;
  /** Why the subject cannot take part. */
  absence(subject: Subject): string | undefined;
  /** Makes sure the subject enforces what the row is about; throws if not. Not timed. */
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
