import { type Clock, keepAlive, LONGEST_DELAY_MS } from "../clock.ts";
import type { Attachment } from "./attachment.ts";
import { readOutcome } from "./outcome.ts";
import type { SyncOutcome } from "./sync-wait.ts";

type WaitAsync = (
  words: Int32Array<SharedArrayBuffer>,
  index: number,
  value: number,
) => { readonly async: false } | { readonly async: true; readonly value: Promise<unknown> };

/** Some engines have SharedArrayBuffer but not `Atomics.waitAsync`. `acquire` reports that. */
export const waitAsync = (Atomics as { waitAsync?: WaitAsync }).waitAsync;

export interface Wait {
  readonly cell: number;
  readonly tag: number;
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
  onOutcome(outcome: SyncOutcome): void;
  onAbort(reason: unknown): void;
}

/** The waits of one thread that do not block its event loop. */
export class AsyncWaits {
  readonly #attachment: Attachment;
  readonly #clock: Clock;
  readonly #pending = new Map<number, { wait: Wait; stop: () => void }>();
  /**
   * A timer that keeps the thread alive while waits are pending (a pending `waitAsync` does not) and takes back overdue
   * slots.
   */
  #pulse: unknown;

  constructor(attachment: Attachment, clock: Clock) {
    this.#attachment = attachment;
    this.#clock = clock;
    attachment.onOutcome = (cell) => this.#look(cell);
  }

  add(wait: Wait): void {
    this.#pending.set(wait.cell, { wait, stop: this.#arm(wait) });
    if (this.#pending.size === 1) this.#setPulse();
    this.#look(wait.cell);
  }

  /** Starts the timer and the listener. The returned function removes both. */
  #arm(wait: Wait): () => void {
    const { signal, timeoutMs } = wait;
    const onAbort = () => this.#leave(wait, () => wait.onAbort(signal?.reason));
    const timer =
      timeoutMs === undefined || timeoutMs > LONGEST_DELAY_MS
        ? undefined
        : this.#clock.setTimer(() => this.#leave(wait, () => wait.onOutcome({ kind: "timed-out" })), timeoutMs);
    signal?.addEventListener("abort", onAbort, { once: true });
    return () => {
      if (timer !== undefined) this.#clock.clearTimer(timer);
      signal?.removeEventListener("abort", onAbort);
    };
  }

  /** The hand-off wins: a waiter that was granted a slot gets it even if it is aborted afterwards (DISPATCH6). */
  #leave(wait: Wait, report: () => void): void {
    if (!this.#isPending(wait)) return;
    if (!this.#attachment.cancel(wait.cell)) return this.#look(wait.cell);
    this.#stop(wait);
    // Ends our own `waitAsync`. Otherwise it would stay registered for ever.
    Atomics.notify(this.#attachment.memory.words, this.#attachment.memory.state(wait.cell));
    report();
  }

  #look(cell: number): void {
    for (let wait = this.#pending.get(cell)?.wait; wait !== undefined; wait = this.#pending.get(cell)?.wait) {
      const outcome = readOutcome(this.#attachment, cell, wait.tag);
      // The call of the desk may end this same wait.
      if (outcome.kind === "asked") this.#attachment.call();
      else if (outcome.kind !== "pending") {
        this.#stop(wait);
        wait.onOutcome(outcome);
      } else if (this.#isListening(wait, outcome.asleep)) return;
    }
  }

  /** Returns false if the state has already changed. */
  #isListening(wait: Wait, asleep: number): boolean {
    const { memory } = this.#attachment;
    const result = waitAsync?.(memory.words, memory.state(wait.cell), asleep);
    if (result?.async !== true) return false;
    void result.value.then(() => {
      if (this.#isPending(wait)) this.#look(wait.cell);
    });
    return true;
  }

  #isPending(wait: Wait): boolean {
    return this.#pending.get(wait.cell)?.wait === wait;
  }

  #stop(wait: Wait): void {
    this.#pending.get(wait.cell)?.stop();
    this.#pending.delete(wait.cell);
    if (this.#pending.size === 0) this.#clock.clearTimer(this.#pulse);
  }

  #setPulse(): void {
    const { memory, leases } = this.#attachment;
    const delayMs = memory.ttlMs > 0 ? leases.nextMs() : LONGEST_DELAY_MS;
    this.#pulse = this.#clock.setTimer(() => this.#beat(), delayMs);
    keepAlive(this.#pulse, true);
  }

  #beat(): void {
    if (this.#attachment.memory.ttlMs > 0) this.#attachment.call();
    if (this.#pending.size > 0) this.#setPulse();
  }
}
