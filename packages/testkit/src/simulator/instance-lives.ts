interface Lives {
  /**
   * The largest number that may be open. A counted end may be reported before the end of a copy, which may then still
   * report `moved`.
   */
  most: number;
  /** The number that must be open. A counted end closes all of them. */
  least: number;
}

/**
 * The lives of sessions at instances, from the events of each instance: a life begins once and ends once, with a grant,
 * a counted end or `moved`. An instance may have two lives of one name: two copies of one session, which end together,
 * or a session and an earlier one whose end has not reached the store yet. The events do not distinguish these cases,
 * so both are allowed.
 */
export class InstanceLives {
  readonly #lives = new Map<string, Lives>();

  begun(key: string): void {
    const { most, least } = this.#of(key);
    this.#lives.set(key, { most: most + 1, least: least + 1 });
  }

  /** The life ended by a grant or a move, which every life reports itself. Returns false if there was none. */
  left(key: string): boolean {
    const { most, least } = this.#of(key);
    this.#lives.set(key, { most: most - 1, least: Math.max(0, least - 1) });
    return most > 0;
  }

  /**
   * The life ended by the commit that ended the session. It may belong to another instance, or its slot may have been
   * delivered.
   */
  ended(key: string): void {
    this.#lives.set(key, { most: this.#of(key).most, least: 0 });
  }

  *open(): Iterable<string> {
    for (const [key, { least }] of this.#lives) if (least > 0) yield key;
  }

  #of(key: string): Lives {
    return this.#lives.get(key) ?? { most: 0, least: 0 };
  }
}
