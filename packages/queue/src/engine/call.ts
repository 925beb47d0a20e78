import type { Demand, PollAnswer } from "@slotkeeper/protocol";
import type { Entry } from "./entry.ts";

/**
 * Reports that a caller has left: an `AbortSignal`, or a smaller object of the server. Ten thousand held calls need ten
 * thousand of these.
 */
export interface CallSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export interface CallInit {
  /** What the call asks for: another call of the same session may have asked for something else. */
  readonly demand: Demand | undefined;
  readonly cameAt: number;
  /** How many calls of the store its host had sent (`HostCache.sent`). */
  readonly cameAfter: number;
  /** When its window ends. The timer of the entry includes this time, so a held call needs no timer of its own. */
  readonly until: number;
  /** A first call that does not wait for a slot. It is never `granted`, as callers of the original service expect. */
  readonly isFirst: boolean;
  readonly signal: CallSignal | undefined;
}

/** One held call. It is answered once: when its session changes, when its window ends, or when its caller leaves. */
export class Call {
  readonly #entry: Entry;
  readonly #signal: CallSignal | undefined;
  readonly #onLeft: (entry: Entry) => void;
  #resolve!: (answer: PollAnswer) => void;
  #reject!: (reason: unknown) => void;
  readonly demand: Demand | undefined;
  readonly cameAt: number;
  readonly cameAfter: number;
  readonly until: number;
  readonly isFirst: boolean;
  readonly answered: Promise<PollAnswer>;

  constructor(entry: Entry, init: CallInit, onLeft: (entry: Entry) => void) {
    const { demand, cameAt, cameAfter, until, isFirst, signal } = init;
    this.#entry = entry;
    this.#signal = signal;
    this.#onLeft = onLeft;
    this.demand = demand;
    this.cameAt = cameAt;
    this.cameAfter = cameAfter;
    this.until = until;
    this.isFirst = isFirst;
    this.answered = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    entry.addCall(this);
    signal?.addEventListener("abort", this.#leave);
  }

  /** Its window is over. A call that does not wait is always due, even if the store's clock was set back. */
  isDue(now: number): boolean {
    return this.until <= Math.max(now, this.cameAt);
  }

  answer(answer: PollAnswer): void {
    this.#close();
    this.#resolve(answer);
  }

  fail(reason: unknown): void {
    this.#close();
    this.#reject(reason);
  }

  readonly #leave = (): void => {
    this.fail(this.#signal?.reason);
    this.#onLeft(this.#entry);
  };

  #close(): void {
    this.#entry.removeCall(this);
    this.#signal?.removeEventListener("abort", this.#leave);
  }
}
