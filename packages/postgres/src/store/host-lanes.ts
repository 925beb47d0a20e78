/**
 * Bounds how many calls for one host are under way, so that a host whose row another program keeps locked does not use up the pool
 * (P7). Calls beyond the bound wait in order; calls for other hosts do not wait for them.
 */
export class HostLanes {
  readonly #width: number;
  readonly #lanes = new Map<string, { running: number; readonly waiting: (() => void)[] }>();
  #waiting = 0;
  #waits = 0;

  constructor(width: number) {
    this.#width = width;
  }

  /** Calls that wait for earlier ones of their host: now, and how many had to so far. */
  get counts(): { readonly waiting: number; readonly waits: number } {
    return { waiting: this.#waiting, waits: this.#waits };
  }

  async run<T>(host: string, call: () => Promise<T>): Promise<T> {
    let lane = this.#lanes.get(host);
    if (lane === undefined) {
      lane = { running: 0, waiting: [] };
      this.#lanes.set(host, lane);
    }
    const { waiting } = lane;
    // A call that ends passes its place on, so `running` does not change then.
    if (lane.running >= this.#width) await this.#turn(waiting);
    else lane.running++;
    try {
      return await call();
    } finally {
      const next = waiting.shift();
      if (next !== undefined) next();
      else if (--lane.running === 0) this.#lanes.delete(host);
    }
  }

  async #turn(waiting: (() => void)[]): Promise<void> {
    this.#waits++;
    this.#waiting++;
    await new Promise<void>((resolve) => waiting.push(resolve));
    this.#waiting--;
  }
}
