/**
 * Whether work may go on without a slot while the service is unreachable.
 *
 * P1  Nothing passes unless the service failed to answer: a busy service is reachable.
 * P2  With a share, at most `floor(share × last known limit)` pass at once per host, for `forMs` after the first failure.
 * P3  Every pass is counted; it is given back once.
 *
 * State      enters when                                    acquires
 * reachable  any call is answered                           ask the service
 * away       an acquire failed `FAILURES_TO_LEAVE` times    pass at once; one per `PROBE_EVERY_MS` asks the service
 */
import type { OnFailure } from "./options.ts";

const FAILURES_TO_LEAVE = 3;
const PROBE_EVERY_MS = 1_000;
const DEFAULT_SHARE_MS = 60_000;
/** Of hosts whose limit is remembered; the one learnt first is forgotten. */
const MOST_HOSTS = 1_000;

export class FailurePolicy {
  readonly #onFailure: OnFailure;
  readonly #limits = new Map<string, number>();
  readonly #passed = new Map<string, number>();
  #failingSince: number | undefined;
  #isAway = false;
  #probeAt = 0;
  /** All that ever passed. */
  passed = 0;

  constructor(onFailure: OnFailure) {
    this.#onFailure = onFailure;
  }

  learn(hostname: string, limit: number | undefined): void {
    if (limit === undefined) return;
    this.#limits.delete(hostname);
    this.#limits.set(hostname, limit);
    const [oldest] = this.#limits.keys();
    if (this.#limits.size > MOST_HOSTS && oldest !== undefined) this.#limits.delete(oldest);
  }

  answered(): void {
    this.#failingSince = undefined;
    this.#isAway = false;
  }

  /** `failures`: of this acquire, in a row. */
  failed(failures: number): void {
    this.#failingSince ??= Date.now();
    if (failures < FAILURES_TO_LEAVE && !this.#isAway) return;
    this.#isAway = true;
    this.#probeAt = Date.now() + PROBE_EVERY_MS;
  }

  /** Before the first call: while the service is away, one caller at a time asks it, for at most `probeMs`. */
  passAtOnce(hostname: string, probeMs: number): (() => void) | undefined {
    if (!this.#isAway) return undefined;
    const isProbe = Date.now() >= this.#probeAt;
    if (isProbe) this.#probeAt = Date.now() + probeMs + PROBE_EVERY_MS;
    return isProbe ? undefined : this.pass(hostname);
  }

  /** Gives the pass back when called. Undefined: none to be had. */
  pass(hostname: string): (() => void) | undefined {
    const inUse = this.#passed.get(hostname) ?? 0;
    if (!this.#isAway || inUse >= this.#allowed(hostname)) return undefined;
    this.passed++;
    this.#passed.set(hostname, inUse + 1);
    return () => this.#giveBack(hostname);
  }

  #allowed(hostname: string): number {
    if (this.#onFailure === "closed") return 0;
    if (this.#onFailure === "open") return Infinity;
    const { share, forMs = DEFAULT_SHARE_MS } = this.#onFailure;
    const isOver = Date.now() - (this.#failingSince ?? 0) >= forMs;
    // 0.29 × 100 is a hair below 29 in binary.
    return isOver ? 0 : Math.floor(share * (this.#limits.get(hostname) ?? 0) + 1e-9);
  }

  #giveBack(hostname: string): void {
    const left = (this.#passed.get(hostname) ?? 0) - 1;
    if (left > 0) this.#passed.set(hostname, left);
    else this.#passed.delete(hostname);
  }
}
