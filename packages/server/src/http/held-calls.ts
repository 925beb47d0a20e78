import type { Exchange } from "./exchange.ts";

/**
 * The calls that are held open.
 *
 * H1 a caller that hangs up is noticed at once: the call's signal aborts, and nothing is answered. H2 when the service
 * stops, every held call is answered with what is so now, and none is held any more.
 */
export class HeldCalls {
  readonly #open = new Set<AbortController>();
  #isDraining = false;

  get size(): number {
    return this.#open.size;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** `atOnce` asks the same without waiting. Undefined: the caller left. */
  async hold<T>(
    { response }: Exchange,
    call: (signal: AbortSignal) => Promise<T>,
    atOnce: () => Promise<T>,
  ): Promise<T | undefined> {
    if (response.destroyed) return undefined;
    if (this.#isDraining) return atOnce();
    const controller = new AbortController();
    const leave = () => controller.abort(LEFT);
    response.once("close", leave);
    this.#open.add(controller);
    try {
      return await untilOwn(call, controller.signal);
    } catch (error) {
      if (error === LEFT) return undefined;
      if (error === DRAINING) return await atOnce();
      throw error;
    } finally {
      this.#open.delete(controller);
      response.removeListener("close", leave);
    }
  }

  drain(): void {
    this.#isDraining = true;
    for (const controller of this.#open) controller.abort(DRAINING);
  }
}

const LEFT = new Error("the caller hung up");
const DRAINING = new Error("the service is stopping");

/** Two calls with one `requestId` share their answer, but not their fate: the other's caller leaving is not ours. */
async function untilOwn<T>(call: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await call(signal);
    } catch (error) {
      if (error !== LEFT || signal.aborted) throw error;
    }
  }
}
