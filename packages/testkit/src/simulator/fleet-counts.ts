import type { QueueEvent } from "@slotkeeper/queue";

/** Events that count a session in the fleet. */
export type CountedType = Extract<QueueEvent["type"], "granted" | "timeout" | "throttled" | "canceled">;

interface Tally extends Record<CountedType, number> {
  begun: number;
  /** How often it began in the store: a name that is used again after its end was forgotten begins another session. */
  lives: number;
  deadlineAt: number;
}

const COUNTED: readonly string[] = ["granted", "timeout", "throttled", "canceled"] satisfies CountedType[];

/**
 * Checks the counters of all instances together for each session at the end (SESSIONS6 of `session-transitions.ts`):
 *   - A session is counted as ended at most once for each time that it began, even if calls fail or are lost and
 *     instances die or pause.
 *   - If no instance dies or pauses, the store always answers and no end is forgotten, it is counted once as begun and
 *     once as ended.
 *
 * A slot that its client released by `cancel` is one end in two counters. An instance that dies counts nothing more,
 * not even the beginning of a session that it has just named. A failover may lose how a session ended after it was
 * counted, so sessions from before it are not checked.
 */
export class FleetCounts {
  readonly #isExact: boolean;
  readonly #tallies = new Map<string, Tally>();
  readonly #spared = new Set<string>();

  constructor(isExact: boolean) {
    this.#isExact = isExact;
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

  begun(session: string): void {
    this.#tally(session).begun++;
  }

  ended(session: string, type: CountedType): void {
    this.#tally(session)[type]++;
  }

  failedOver(): void {
    for (const session of this.#tallies.keys()) this.#spared.add(session);
  }

  /** Whether the session is from before a failover. */
  isSpared(session: string): boolean {
    return this.#spared.has(session);
  }

  /** Whether some instance has counted an end of it. */
  hasEnded(session: string): boolean {
    const { granted, timeout, throttled, canceled } = this.#tally(session);
    return granted + timeout + throttled + canceled > 0;
  }

  *miscounted(): Iterable<string> {
    for (const [session, tally] of this.#tallies) {
      if (this.#isRight(tally) || this.#spared.has(session)) continue;
      yield `${session} was counted wrongly: ${JSON.stringify(tally)}`;
    }
  }

  #isRight({ begun, lives, granted, timeout, throttled, canceled }: Tally): boolean {
    const most = granted + timeout + throttled + canceled;
    const least = most - Math.min(granted, canceled);
    return this.#isExact ? least <= begun && begun <= most : least <= Math.max(1, begun, lives);
  }

  #tally(session: string): Tally {
    let tally = this.#tallies.get(session);
    if (tally === undefined) {
      tally = {
        begun: 0,
        lives: 0,
        deadlineAt: Number.NEGATIVE_INFINITY,
        granted: 0,
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
