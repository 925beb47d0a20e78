/**
 * Bounds how many calls for one host are under way, so that a host whose row somebody keeps locked does not use up the pool
 * (P7). Calls beyond the bound wait in order; calls for other hosts do not wait for them.
 */
export class HostLanes {
  readonly #width: number;
  readonly #lanes = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  constructor(width: number) {
    this.#width = width;
  }

  async run<T>(host: string, call: () => Promise<T>): Promise<T> {
    let lane = this.#lanes.get(host);
    if (lane === undefined) {
      lane = { running: 0, waiting: [] };
      this.#lanes.set(host, lane);
    }
    const { waiting } = lane;
    // A call that ends passes its place on, so `running` does not change then.
    if (lane.running >= this.#width) await new Promise<void>((resolve) => waiting.push(resolve));
    else lane.running++;
    try {
      return await call();
    } finally {
      const next = waiting.shift();
      if (next !== undefined) next();
      else if (--lane.running === 0) this.#lanes.delete(host);
    }
  }
}
