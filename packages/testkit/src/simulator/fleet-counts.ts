import type { QueueEvent } from "@slotkeeper/queue";

/** Events that count a session in the fleet. */
export type CountedType = Extract<
  QueueEvent["type"],
  "session-created" | "granted" | "returned" | "timeout" | "throttled" | "canceled"
>;

interface Tally extends Record<CountedType, number> {
  /** How often it began in the store: a name that is used again after its end was forgotten begins another session. */
  lives: number;
  deadlineAt: number;
}

const COUNTED: readonly string[] = [
  "session-created",
  "granted",
  "returned",
  "timeout",
  "throttled",
  "canceled",
] satisfies CountedType[];

/**
 * Checks the counters of all instances together for each session at the end (ENDS2 of `ends.ts`):
 *   - A session is counted at most once as begun, as delivered (granted and not returned), and as timeout, throttled or
 *     canceled, for each time that it began in the store, even if calls fail or are lost and instances die or pause.
 *   - If no instance dies or pauses, the store always answers and no end is forgotten, it is counted once as begun and
 *     once as ended.
 *
 * A slot that its client released by `cancel` is one end in two counters. An instance that dies may not count its last
 * commit. A failover may lose what was counted, so sessions from before it are not checked.
 */
export class FleetCounts {
  readonly #isExact: boolean;
  readonly #keepsAllEnds: boolean;
  readonly #tallies = new Map<string, Tally>();
  readonly #spared = new Set<string>();

  constructor(isExact: boolean, keepsAllEnds: boolean) {
    this.#isExact = isExact;
    this.#keepsAllEnds = keepsAllEnds;
  }

  /** A commit names the session. The commit may be lost, or its instance may die, before anything of it is reported. */
  committed(session: string, deadlineAt: number, now: number): void {
    const tally = this.#tally(session);
    if (now >= tally.deadlineAt && deadlineAt > tally.deadlineAt) tally.lives++;
    tally.deadlineAt = Math.max(tally.deadlineAt, deadlineAt);
  }

  /** The store has forgotten how the session ended: a repeated first call begins another session. */
  forgotten(session: string, now: number): void {
    const tally = this.#tally(session);
    tally.deadlineAt = Math.min(tally.deadlineAt, now);
  }

  count(session: string, type: CountedType): void {
    this.#tally(session)[type]++;
  }

  failedOver(): void {
    for (const session of this.#tallies.keys()) this.#spared.add(session);
  }

  *miscounted(): Iterable<string> {
    for (const [session, tally] of this.#tallies) {
      if (this.#isRight(tally) || this.#spared.has(session)) continue;
      yield `${session} was counted wrongly: ${JSON.stringify(tally)}`;
    }
  }

  #isRight(tally: Tally): boolean {
    const { "session-created": begun, lives, granted, returned, timeout, throttled, canceled } = tally;
    const ended = timeout + throttled + canceled;
    // An end may be forgotten in the decision that records it. Then the name begins again, and no commit shows that.
    const most = Math.max(1, lives, this.#keepsAllEnds ? 1 : begun);
    if (!this.#isExact) return begun <= most && ended <= most;
    const delivered = granted - returned;
    const isEnded = delivered + ended - Math.min(delivered, canceled) <= begun && begun <= delivered + ended;
    return begun <= most && delivered >= 0 && delivered <= begun && ended <= begun && isEnded;
  }

  #tally(session: string): Tally {
    let tally = this.#tallies.get(session);
    if (tally === undefined) {
      tally = {
        "session-created": 0,
        lives: 0,
        deadlineAt: Number.NEGATIVE_INFINITY,
        granted: 0,
        returned: 0,
        timeout: 0,
        throttled: 0,
        canceled: 0,
      };
      this.#tallies.set(session, tally);
    }
    return tally;
  }
}

export function isCounted(type: QueueEvent["type"]): type is CountedType {
  return COUNTED.includes(type);
}
