import { STORE_PROBLEMS, type StoreProblem } from "../failures/failure-table.ts";
import { DatabaseError } from "./database-error.ts";

/** Whether a grant could be committed now, and why not. Any caller may read `detail`. The log has the rest. */
export type StoreHealth =
  | { readonly isReady: true }
  | { readonly isReady: false; readonly reason: StoreProblem; readonly detail: string; readonly error: unknown };

/** Numbers of the store at this instance, for metrics. Counts only grow. */
export interface StoreGauges {
  readonly pool: {
    readonly size: number;
    readonly idle: number;
    /** Calls that wait for a connection now. */
    readonly waiting: number;
    /** Calls that had to wait for a connection, and for how long in total. */
    readonly waits: number;
    readonly waitedMs: number;
  };
  /** Calls that wait for earlier calls of their host. */
  readonly lanes: { readonly waiting: number; readonly waits: number };
  readonly listener: { readonly isUp: boolean | undefined; readonly losses: number };
}

/** For a store without connections of its own. */
export const NO_CONNECTIONS: StoreGauges = {
  pool: { size: 0, idle: 0, waiting: 0, waits: 0, waitedMs: 0 },
  lanes: { waiting: 0, waits: 0 },
  listener: { isUp: undefined, losses: 0 },
};

export function unhealthy(error: unknown): StoreHealth {
  const { problem, state } =
    error instanceof DatabaseError ? error : ({ problem: "STORE_FAILED", state: undefined } as const);
  const detail = `${STORE_PROBLEMS[problem]}${state === undefined ? "" : ` (${state})`}`;
  return { isReady: false, reason: problem, detail, error };
}

/** How long a failed commit counts. The engine repeats it every poll interval, so a commit that keeps failing stays recent. */
const FAILURE_COUNTS_MS = 2_000;

/**
 * Watches the results of commits. A separate check cannot find a full disk, or a rule that refuses some rows. Failures
 * that affect only one host do not count, and neither do failures with an unknown cause, which may come from the data
 * of one host.
 */
export class CommitWatch {
  #failure: { readonly error: DatabaseError; readonly at: number } | undefined;

  get failure(): DatabaseError | undefined {
    const { error, at = 0 } = this.#failure ?? {};
    return performance.now() - at < FAILURE_COUNTS_MS ? error : undefined;
  }

  succeeded(): void {
    this.#failure = undefined;
  }

  failed(error: unknown): void {
    if (!(error instanceof DatabaseError) || error.isOfHost || error.problem === "STORE_FAILED") return;
    this.#failure = { error, at: performance.now() };
  }
}
