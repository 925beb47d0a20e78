interface Hold {
  readonly from: number;
  until: number;
}

/** The figures are those of the last ten seconds. */
const WINDOW_MS = 10_000;
const BY_SIZE = (a: number, b: number) => a - b;

/** When the clients used which slots, by their own clock. */
export class Holds {
  granted = 0;
  failed = 0;
  readonly #slots: number;
  readonly #startedAt = performance.now();
  #holds: Hold[] = [];

  constructor(slots: number) {
    this.#slots = slots;
  }

  begin(): Hold {
    const hold = { from: performance.now(), until: Number.POSITIVE_INFINITY };
    this.granted++;
    this.#holds.push(hold);
    return hold;
  }

  end(hold: Hold): void {
    hold.until = performance.now();
  }

  get inUse(): number {
    return this.#holds.filter(({ until }) => until === Number.POSITIVE_INFINITY).length;
  }

  /** Grants per second, the part of the slot time that was used, and how long a freed slot was idle. */
  figures(): { grantsPerSecond: number; utilisation: number; handOverP99Ms: number } {
    const now = performance.now();
    const from = Math.max(this.#startedAt, now - WINDOW_MS);
    // The previous window is kept, because holds may reach into this one.
    this.#holds = this.#holds.filter(({ until }) => until > from - WINDOW_MS);
    const seconds = (now - from) / 1000;
    const grants = this.#holds.filter((hold) => hold.from >= from).length;
    const used = this.#holds.reduce(
      (sum, hold) => sum + Math.max(0, Math.min(hold.until, now) - Math.max(hold.from, from)),
      0,
    );
    return {
      grantsPerSecond: grants / seconds,
      utilisation: used / (this.#slots * seconds * 1000),
      handOverP99Ms: this.#handOverP99(from),
    };
  }

  /** The n-th release makes room for the n-th grant after it, while there is always a waiter. */
  #handOverP99(from: number): number {
    const inUseThen = this.#holds.filter((hold) => hold.from < from && hold.until >= from).length;
    const freed = this.#holds
      .map(({ until }) => until)
      .filter((at) => at >= from && at < Number.POSITIVE_INFINITY)
      .sort(BY_SIZE);
    const taken = this.#holds
      .map((hold) => hold.from)
      .filter((at) => at >= from)
      .sort(BY_SIZE)
      .slice(this.#slots - inUseThen);
    const idle = freed.flatMap((at, n) => (taken[n] === undefined ? [] : [Math.max(0, taken[n] - at)])).sort(BY_SIZE);
    return idle[Math.floor(idle.length * 0.99)] ?? 0;
  }
}
