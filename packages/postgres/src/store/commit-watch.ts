import type { StoreHealth } from "@slotkeeper/queue";
import { STORE_PROBLEMS, type StoreProblem } from "../failures/failure-table.ts";
import { DatabaseError } from "./database-error.ts";

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

export function unhealthy(error: unknown): StoreHealth<StoreProblem> {
  const { problem, state } =
    error instanceof DatabaseError ? error : ({ problem: "STORE_FAILED", state: undefined } as const);
  const detail = `${STORE_PROBLEMS[problem]}${state === undefined ? "" : ` (${state})`}`;
  return { isReady: false, reason: problem, detail, error };
}
