import { STORE_PROBLEMS, type StoreProblem } from "@slotkeeper/postgres";
import type { Logger } from "../log/logger.ts";
import { within } from "../platform/clock.ts";
import type { OpenStoreHealth as StoreHealth } from "../store/open-store.ts";

/** A check that takes longer counts as failed: every request is answered within two seconds. */
const PATIENCE_MS = 1_200;
/** How long an outcome is reused. For any number of requests, the store is asked at most a hundred times a second. */
const FRESH_MS = 10;

export type Readiness = { readonly isReady: true; readonly weaknesses: readonly Weakness[] } | NotReady;

interface NotReady {
  readonly isReady: false;
  readonly reason: NotReadyReason;
  /** A sentence that any caller may read. */
  readonly detail: string;
}

/** Slots are granted, but not as fast as they should be. */
interface Weakness {
  readonly reason: "LISTENER_DOWN";
  readonly detail: string;
}

export type NotReadyReason = "STOPPING" | Exclude<StoreHealth, { isReady: true }>["reason"];

/** All reasons, for the metric: one series for each. */
export const NOT_READY_REASONS: readonly NotReadyReason[] = [
  "STOPPING",
  "JOURNAL_UNWRITABLE",
  ...(Object.keys(STORE_PROBLEMS) as StoreProblem[]),
];

const LISTENER_DOWN: Weakness = {
  reason: "LISTENER_DOWN",
  detail:
    "No notifications arrive from the database: a slot that another instance frees reaches a waiter here up to a second late",
};

export interface ReadinessInit {
  readonly health: () => StoreHealth | Promise<StoreHealth>;
  /** Returns `undefined` if the store has no listener. */
  readonly isListenerUp: () => boolean | undefined;
  readonly isStopping: () => boolean;
  /** Called when the outcome changes, not for every check. */
  readonly onTurn: (outcome: Readiness, error: unknown) => void;
}

/**
 * Decides whether this instance should get requests, and why not.
 *
 * READYZ1  An answer takes at most `PATIENCE_MS`, and is at most `FRESH_MS` old.
 * READYZ2  At most one check of the store runs at a time, so checks do not pile up if the store hangs.
 * READYZ3  Each change of the outcome is logged once.
 */
export class ReadinessCheck {
  readonly #init: ReadinessInit;
  #checking: { readonly startedAt: number; readonly health: Promise<StoreHealth> } | undefined;
  #last: { readonly at: number; readonly health: StoreHealth } | undefined;
  #reported = "";

  constructor(init: ReadinessInit) {
    this.#init = init;
  }

  async read(): Promise<Readiness> {
    if (this.#init.isStopping()) return { isReady: false, reason: "STOPPING", detail: "The service is stopping" };
    const health = await this.#health();
    const outcome = this.#outcomeOf(health);
    const text = JSON.stringify(outcome);
    if (text !== this.#reported) {
      const isFirst = this.#reported === "";
      this.#reported = text;
      const isFine = outcome.isReady && outcome.weaknesses.length === 0;
      if (!isFirst || !isFine) this.#init.onTurn(outcome, health.isReady ? undefined : health.error);
    }
    return outcome;
  }

  #outcomeOf(health: StoreHealth): Readiness {
    if (!health.isReady) return { isReady: false, reason: health.reason, detail: health.detail };
    return { isReady: true, weaknesses: this.#init.isListenerUp() === false ? [LISTENER_DOWN] : [] };
  }

  async #health(): Promise<StoreHealth> {
    if (this.#last !== undefined && performance.now() - this.#last.at < FRESH_MS) return this.#last.health;
    if (this.#checking === undefined) {
      const found = this.#init.health();
      if (!(found instanceof Promise)) return found;
      this.#checking = { startedAt: performance.now(), health: this.#kept(found) };
    }
    const { startedAt, health } = this.#checking;
    return within(startedAt + PATIENCE_MS - performance.now(), health, silent);
  }

  async #kept(health: Promise<StoreHealth>): Promise<StoreHealth> {
    const found = await health;
    this.#checking = undefined;
    this.#last = { at: performance.now(), health: found };
    return found;
  }
}

function silent(): StoreHealth {
  const detail = `${STORE_PROBLEMS.STORE_SILENT} (${PATIENCE_MS} ms)`;
  return { isReady: false, reason: "STORE_SILENT", detail, error: undefined };
}

/** Logs what `/readyz` answers with a code and a sentence, and adds the error of the store for the person on call. */
export function logTurn(log: Logger, outcome: Readiness, error: unknown): void {
  if (!outcome.isReady) log.warn("not ready", { reason: outcome.reason, detail: outcome.detail, error });
  else if (outcome.weaknesses.length > 0) log.warn("ready, but degraded", { degraded: outcome.weaknesses });
  else log.info("ready");
}
