interface Tally {
  begun: number;
  ended: number;
}

/**
 * What the counters of all instances together say of each session when all is over (SESSIONS6 of `session-transitions.ts`):
 *   - it is counted as ended once at most for each time that it was begun, whatever fails or is lost, and whichever instance dies or
 *     stands still
 *   - where no instance dies or stands still, and the store always answers, it is counted once as begun and once as ended
 * An instance that dies counts nothing more, not even the beginning of a session that it has just named. A failover may lose how
 * a session ended, after it was counted: sessions from before it are not judged.
 */
export class FleetCounts {
  readonly #isExact: boolean;
  readonly #tallies = new Map<string, Tally>();
  readonly #spared = new Set<string>();

  constructor(isExact: boolean) {
    this.#isExact = isExact;
  }

  begun(session: string): void {
    this.#tally(session).begun++;
  }

  ended(session: string): void {
    this.#tally(session).ended++;
  }

  failedOver(): void {
    for (const session of this.#tallies.keys()) this.#spared.add(session);
  }

  *miscounted(): Iterable<string> {
    for (const [session, { begun, ended }] of this.#tallies) {
      const isRight = this.#isExact ? begun === ended : ended <= Math.max(1, begun);
      if (isRight || this.#spared.has(session)) continue;
      yield `${session} was counted ${begun} times as begun, ${ended} times as ended`;
    }
  }

  #tally(session: string): Tally {
    let tally = this.#tallies.get(session);
    if (tally === undefined) {
      tally = { begun: 0, ended: 0 };
      this.#tallies.set(session, tally);
    }
    return tally;
  }
}
