/**
 * The event loop of one process. While the process is paused, everything that reaches it waits. When it continues, all
 * of it runs at once, in order. A closed gate lets nothing in any more: the process is dead.
 */
export class Gate {
  #held: (() => void)[] | undefined;
  #isClosed = false;

  get isPaused(): boolean {
    return this.#held !== undefined;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  enter(task: () => void): void {
    if (this.#isClosed) return;
    if (this.#held === undefined) task();
    else this.#held.push(task);
  }

  pause(): void {
    this.#held ??= [];
  }

  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const task of held) this.enter(task);
  }

  close(): void {
    this.#isClosed = true;
    this.#held = undefined;
  }
}
