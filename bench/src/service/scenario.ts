import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { Waiting } from "./load/slot-client.ts";

/** Whom a scenario is run against. The servers are in `servers.ts`. */
export type SubjectId =
  | "bare"
  | "slotkeeper"
  | "weighted"
  | "journal"
  | "postgres"
  | "postgres-weighted"
  | "seed"
  | "seed-sql";

/** What one run of one subject gave, by name. */
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

/** `measured` is held against `bound`: at least or at most. */
export interface Goal {
  readonly text: string;
  readonly bound: number;
  readonly isLeast: boolean;
  readonly measured: (figures: Figures) => number;
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** The first is what the others are read against. */
  readonly subjects: readonly SubjectId[];
  /** Those no goal is about: one round shows what they are like. */
  readonly forComparison?: readonly SubjectId[];
  /** Clients mostly hold or wait: rounds side by side do not disturb each other. */
  readonly isLight?: boolean;
  /** Server and load take turns: each has a core of its own. */
  readonly isPinned?: boolean;
  readonly fairQueue: FairQueueConfig;
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
