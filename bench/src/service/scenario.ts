import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { Waiting } from "./load/slot-client.ts";

/** The subjects of a scenario. `servers.ts` has their servers. */
export type SubjectId =
  | "bare"
  | "slotkeeper"
  | "weighted"
  | "journal"
  | "postgres"
  | "postgres-weighted"
  /** On a database that does not sync its commits, which loses some in a crash. It shows what the syncs cost. */
  | "postgres-unsynced"
  | "seed"
  | "seed-sql"
  | `${"slotkeeper" | "postgres"}-${"again" | "constrained" | "old"}`;

/** The result of one run of one subject, by name. */
export type Metrics = Readonly<Record<string, number>>;

/** The parameters of a load process. */
export interface LoadContext {
  readonly url: string;
  readonly serverPid: number;
  readonly subject: SubjectId;
  readonly waiting: Waiting;
  readonly isShort: boolean;
}

/** Figures of all subjects, medians over the rounds. */
type Figures = (subject: SubjectId, metric: string) => number;

/** `measured` must be at least, or at most, `bound`. */
export interface Goal {
  readonly text: string;
  readonly bound: number;
  readonly isLeast: boolean;
  readonly measured: (figures: Figures) => number;
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** The first one is the reference of the others. */
  readonly subjects: readonly SubjectId[];
  /** Subjects without a goal: one round is enough. */
  readonly forComparison?: readonly SubjectId[];
  /** Whether clients mostly hold or wait, so that rounds in parallel do not disturb each other. */
  readonly isLight?: boolean;
  /** Whether server and load take turns, so that each needs its own core. */
  readonly isPinned?: boolean;
  readonly fairQueue: FairQueueConfig;
  /** What subjects have in addition whose names end with `-constrained`. */
  readonly constraints?: FairQueueConfig;
  readonly load: (context: LoadContext) => Promise<Metrics>;
  readonly goals: readonly Goal[];
}

/** Goals of one subject's own figure. */
export const atLeast = (subject: SubjectId, metric: string, bound: number): Goal => ({
  text: `${subject}: ${metric} ≥ ${bound}`,
  bound,
  isLeast: true,
  measured: (figures) => figures(subject, metric),
});

export const atMost = (subject: SubjectId, metric: string, bound: number): Goal => ({
  text: `${subject}: ${metric} ≤ ${bound}`,
  bound,
  isLeast: false,
  measured: (figures) => figures(subject, metric),
});

/** Goals of a figure against another subject's. */
export const atMostTimes = (subject: SubjectId, metric: string, bound: number, other: SubjectId): Goal => ({
  text: `${subject}: ${metric} ≤ ${bound} × ${other}`,
  bound,
  isLeast: false,
  measured: (figures) => figures(subject, metric) / figures(other, metric),
});

export const atLeastTimes = (subject: SubjectId, metric: string, bound: number, other: SubjectId): Goal => ({
  text: `${subject}: ${metric} ≥ ${bound} × ${other}`,
  bound,
  isLeast: true,
  measured: (figures) => figures(subject, metric) / figures(other, metric),
});
