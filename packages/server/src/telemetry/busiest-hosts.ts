/**
 * Finds the busiest of any number of hosts, in bounded memory.
 *
 * BUSY1  At most `most` hosts are tracked and at most `candidates` are counted, for any number of hosts.
 * BUSY2  While there is room, a host is tracked from its first use.
 * BUSY3  A host with more than one in `candidates` + 1 of all uses since the last election is counted (Misra and Gries,
 *     "Finding repeated elements", 1982). The `most` largest counts are elected.
 * BUSY4  A tracked host is replaced only by a host that was used at least half as much again, so that two similar hosts
 *     do not alternate.
 * BUSY5  A host that was not used for `PATIENCE` elections is dropped.
 *
 * Cost: O(1) amortised for a use; O(candidates · log) for an election.
 */
export class BusiestHosts<T> {
  readonly #init: BusiestHostsInit<T>;
  readonly #tracked = new Map<string, Tracked<T>>();
  #counts = new Map<string, number>();

  constructor(init: BusiestHostsInit<T>) {
    this.#init = init;
  }

  /** Counts a use. Returns the data of the host, or `undefined` if it is not tracked. */
  use(host: string): T | undefined {
    this.#count(host);
    const tracked = this.#tracked.get(host);
    if (tracked !== undefined) return tracked.kept;
    return this.#tracked.size < this.#init.most ? this.#track(host) : undefined;
  }

  /** Returns the data of the host without counting a use. */
  get(host: string): T | undefined {
    return this.#tracked.get(host)?.kept;
  }

  /** A viewer asks for this host: it is tracked at least until the next election, instead of the least used one. */
  watch(host: string): T {
    const known = this.#tracked.get(host);
    if (known !== undefined) {
      known.isWatched = true;
      return known.kept;
    }
    if (this.#tracked.size >= this.#init.most) this.#dropLeast();
    const kept = this.#track(host);
    (this.#tracked.get(host) as Tracked<T>).isWatched = true;
    return kept;
  }

  *entries(): Iterable<readonly [host: string, kept: T]> {
    for (const [host, { kept }] of this.#tracked) yield [host, kept];
  }

  get size(): number {
    return this.#tracked.size;
  }

  elect(): void {
    const merit = (host: string) => {
      const tracked = this.#tracked.get(host);
      if (tracked?.isWatched === true) return Number.POSITIVE_INFINITY;
      return (this.#counts.get(host) ?? 0) * (tracked === undefined ? 1 : INCUMBENT);
    };
    for (const [host, tracked] of this.#tracked) {
      tracked.idle = tracked.isWatched || this.#counts.has(host) ? 0 : tracked.idle + 1;
      if (tracked.idle >= PATIENCE) this.#tracked.delete(host);
    }
    const standing = [...new Set([...this.#tracked.keys(), ...this.#counts.keys()])];
    const elected = standing.sort((a, b) => merit(b) - merit(a)).slice(0, this.#init.most);
    const isElected = new Set(elected);
    for (const host of this.#tracked.keys()) if (!isElected.has(host)) this.#tracked.delete(host);
    for (const host of elected) if (!this.#tracked.has(host)) this.#track(host);
    for (const tracked of this.#tracked.values()) tracked.isWatched = false;
    this.#counts = new Map();
  }

  #track(host: string): T {
    const kept = this.#init.create(host);
    this.#tracked.set(host, { kept, isWatched: false, idle: 0 });
    return kept;
  }

  #dropLeast(): void {
    let least: { host: string; count: number } | undefined;
    for (const [host, { isWatched }] of this.#tracked) {
      const count = isWatched ? Number.POSITIVE_INFINITY : (this.#counts.get(host) ?? 0);
      if (least === undefined || count < least.count) least = { host, count };
    }
    if (least !== undefined) this.#tracked.delete(least.host);
  }

  #count(host: string): void {
    const count = this.#counts.get(host);
    if (count !== undefined) this.#counts.set(host, count + 1);
    else if (this.#counts.size < this.#init.candidates) this.#counts.set(host, 1);
    else this.#takeOneFromAll();
  }

  /** Amortised: each step removes what an earlier use has added. */
  #takeOneFromAll(): void {
    for (const [host, count] of this.#counts) {
      if (count === 1) this.#counts.delete(host);
      else this.#counts.set(host, count - 1);
    }
  }
}

interface BusiestHostsInit<T> {
  readonly most: number;
  readonly candidates: number;
  /** Creates the data of a tracked host. */
  readonly create: (host: string) => T;
}

interface Tracked<T> {
  readonly kept: T;
  isWatched: boolean;
  /** The number of elections without a use. */
  idle: number;
}

const INCUMBENT = 1.5;
const PATIENCE = 15;
