interface Lives {
  /** That may be open. A counted end may be reported while a copy's own end is on its way: that copy may still report `moved`. */
  most: number;
  /** That must be open: a counted end closed them all. */
  least: number;
}

/**
 * The lives of sessions at instances, as the events of each instance show them: a life begins once, and ends once, with a grant, a counted
 * end or `moved`. An instance may have two lives of one name: two copies of one session, which end together, or a session and an
 * earlier one whose end is still on its way to the store. The events do not say which, so both are allowed for.
 */
export class InstanceLives {
  readonly #lives = new Map<string, Lives>();

  begun(key: string): void {
    const { most, least } = this.#of(key);
    this.#lives.set(key, { most: most + 1, least: least + 1 });
  }

  /** By a grant or a move, which every life reports for itself. False: there was none. */
  left(key: string): boolean {
    const { most, least } = this.#of(key);
    this.#lives.set(key, { most: most - 1, least: Math.max(0, least - 1) });
    return most > 0;
  }

  /** By the commit that ended the session. It may be of another instance's session, or of one whose slot was delivered. */
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
