import { RESERVED_MS, type Refusal } from "../store/host-store.ts";
import type { CycleHost, EngineContext } from "./context.ts";

/** After this time without an answer, sessions report that they wait for the store. */
export const SILENT_MS = 1_000;
/** The pause after the second consecutive refusal for `slots`. Each further one doubles it, up to the poll interval. */
const REFUSED_MS = 20;

/**
 * How a cycle waits for the store: for an answer, after a refusal, and while the store fails. It waits on a timer of its
 * own and not on the agenda, whose times are the store's: an answer may set those back, and the wait would be longer.
 */
export class StoreWait {
  readonly #host: CycleHost;
  readonly #engine: EngineContext;
  /** Ends the pause. */
  #resume: (() => void) | undefined;
  /** The pause lets another instance commit, because the store has reserved the next commit for it. */
  #isYielding = false;
  #timer: unknown;

  constructor(host: CycleHost, engine: EngineContext) {
    this.#host = host;
    this.#engine = engine;
  }

  /** CYCLE4: retries every poll interval until the store answers. */
  async untilAnswered<T>(operation: string, first: Promise<T>, again: () => T | Promise<T>): Promise<T> {
    for (let answer: T | Promise<T> = first; ; answer = again()) {
      try {
        const answered = await this.#watched(answer);
        this.#host.storeAnswered(true);
        return answered;
      } catch (error) {
        this.#engine.emit({ type: "store-error", host: this.#host.key, operation, error });
        this.#host.storeAnswered(false);
        await this.#pause(this.#engine.options().pollIntervalMs);
      }
    }
  }

  /** Call before a refused commit is retried. `slotRefusals`: the number of consecutive refusals for `slots` (CYCLE7). */
  async afterRefusal(reason: Refusal, slotRefusals: number): Promise<void> {
    if (reason === "reserved") {
      this.#isYielding = true;
      await this.#pause(RESERVED_MS / 2);
      this.#isYielding = false;
    } else if (slotRefusals > 1) {
      const ms = REFUSED_MS * 2 ** (slotRefusals - 2);
      await this.#pause(Math.min(ms, this.#engine.options().pollIntervalMs));
    }
  }

  /** Another instance has committed, so its reservation is over. */
  othersCommitted(): void {
    if (this.#isYielding) this.#endPause();
  }

  close(): void {
    if (this.#timer !== undefined) this.#engine.time.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  /** CYCLE8. */
  async #watched<T>(answer: T | Promise<T>): Promise<T> {
    this.#timer = this.#engine.time.setTimer(() => this.#host.storeAnswered(false), SILENT_MS);
    try {
      return await answer;
    } finally {
      this.close();
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve;
      this.#timer = this.#engine.time.setTimer(() => this.#endPause(), ms);
    });
  }

  #endPause(): void {
    this.close();
    this.#resume?.();
    this.#resume = undefined;
  }
}
