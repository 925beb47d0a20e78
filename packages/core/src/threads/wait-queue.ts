import {
  CANCELLED,
  CLAIMED,
  GATE,
  GONE,
  HEAD,
  HIGHEST,
  isPending,
  kindOf,
  LENGTH,
  type Memory,
  NUDGED,
  ORDERED,
  SHUT,
  stateOf,
  TAIL,
  TICKETS,
  UNUSED,
  WAITING,
} from "./memory.ts";

/**
 * A sweep is due when at least this many cells, and half of the queue, are cancelled. The cost per cancellation is
 * O(1).
 */
const SWEEP_FROM = 32;
/** How many used cells are checked before a new one is taken. */
const FEW = 8;

export interface Cancellation {
  readonly isCancelled: boolean;
  readonly needsDesk: boolean;
}

/**
 * The waiters in the order of arrival. There are two parts: the **arrivals**, a stack that any thread pushes to by one
 * compare-and-swap of the gate word, and the **queue**, a linked list that only the owner of the desk changes.
 *
 * TQUEUE1 A push is the arrival: the queue has the order of the pushes.
 * TQUEUE2 The gate is never OPEN while a waiter is in either part.
 * TQUEUE3 The stack is emptied only after all of it is in the queue, and a cell leaves the queue only after its state
 *     is final. So if a thread dies at any instant, a pending cell can be found in order, by its ticket (in the queue)
 *     or in the stack, or it was never pushed.
 * TQUEUE4 Cancelled cells are given back at the head, or by a sweep when half of the queue is cancelled: each costs
 *     O(1).
 */
export class WaitQueue {
  readonly #memory: Memory;
  readonly #owner: number;
  /** The cell at which the search for an unused cell begins. */
  #hint = 1;

  constructor(memory: Memory, owner: number) {
    this.#memory = memory;
    this.#owner = owner;
  }

  // ---- called by any thread

  /**
   * Claims an unused cell, or returns 0 if there is none. Prefers cells that were used before, because `count` reads
   * only those.
   */
  claim(): number {
    const memory = this.#memory;
    return (
      this.#claimFrom(this.#hint, memory.load(HIGHEST), FEW) ||
      this.#claimFrom(memory.load(HIGHEST) + 1, memory.waitCells, memory.waitCells) ||
      this.#claimFrom(1, memory.waitCells, memory.waitCells)
    );
  }

  /** Adds a cell to the arrivals. The caller must call the desk next. */
  push(cell: number, tag: number): void {
    const memory = this.#memory;
    memory.store(memory.tag(cell), tag);
    // Before WAITING: a pending cell with a ticket is in the queue (TQUEUE3), and this may be the ticket of its last
    // use.
    memory.store(memory.ticket(cell), 0);
    memory.store(memory.state(cell), stateOf(WAITING, this.#owner));
    for (;;) {
      const top = memory.load(GATE);
      memory.store(memory.below(cell), top);
      if (memory.swap(GATE, top, cell)) return;
    }
  }

  /** Gives back a cell after its owner has read the outcome. */
  giveBack(cell: number): void {
    this.#memory.store(this.#memory.state(cell), UNUSED);
    this.#hint = cell;
  }

  /** Marks a cell of this thread as cancelled, unless its outcome came first. */
  cancel(cell: number): Cancellation {
    const memory = this.#memory;
    for (;;) {
      const seen = memory.load(memory.state(cell));
      const kind = kindOf(seen);
      if (!isPending(kind)) return { isCancelled: false, needsDesk: false };
      if (memory.swap(memory.state(cell), seen, stateOf(CANCELLED, this.#owner))) {
        const gone = Atomics.add(memory.words, GONE, 1) + 1;
        // A nudged waiter that leaves must still call the desk (DESK3).
        return { isCancelled: true, needsDesk: kind === NUDGED || this.#isSweepDue(gone) };
      }
    }
  }

  /**
   * Called after an order (resize, close) was written: no arrival may pass it, and the gate does not open before it is
   * read.
   */
  shutForOrder(): void {
    for (;;) {
      const seen = this.#memory.load(GATE);
      if (seen > 0 || this.#memory.swap(GATE, seen, ORDERED)) return;
    }
  }

  /** The number of pending cells. It reads every cell that was ever used; for people and metrics. */
  count(): number {
    const memory = this.#memory;
    const highest = memory.load(HIGHEST);
    let pending = 0;
    for (let cell = 1; cell <= highest; cell++) {
      if (isPending(kindOf(memory.load(memory.state(cell))))) pending++;
    }
    return pending;
  }

  /** Like `count`, but O(1) and not exact while threads arrive and leave. */
  estimate(): number {
    return Math.max(0, this.length - this.#memory.load(GONE));
  }

  // ---- called by the owner of the desk

  get head(): number {
    return this.#memory.load(HEAD);
  }

  get tail(): number {
    return this.#memory.load(TAIL);
  }

  get length(): number {
    return this.#memory.load(LENGTH);
  }

  /** Moves the arrivals into the queue, oldest first. */
  admit(): void {
    const memory = this.#memory;
    memory.swap(GATE, ORDERED, SHUT);
    for (let top = memory.load(GATE); top > 0; top = memory.load(GATE)) {
      const fresh: number[] = [];
      for (let cell = top; cell > 0 && memory.load(memory.ticket(cell)) === 0; cell = memory.load(memory.below(cell))) {
        fresh.push(cell);
      }
      for (let cell = fresh.pop(); cell !== undefined; cell = fresh.pop()) this.#append(cell);
      if (memory.swap(GATE, top, SHUT)) return;
    }
  }

  /**
   * Removes a cell whose state is final from the queue. Its owner may already use it again, but these words belong to
   * the desk.
   */
  unlink(cell: number): void {
    const memory = this.#memory;
    const ahead = memory.load(memory.ahead(cell));
    const behind = memory.load(memory.behind(cell));
    memory.store(ahead === 0 ? HEAD : memory.behind(ahead), behind);
    memory.store(behind === 0 ? TAIL : memory.ahead(behind), ahead);
    memory.store(LENGTH, memory.load(LENGTH) - 1);
  }

  sweepIfDue(): void {
    if (this.#isSweepDue(this.#memory.load(GONE))) this.sweep();
  }

  /** Removes every cancelled cell. Returns false if there is none. */
  sweep(): boolean {
    const memory = this.#memory;
    // Reset first: a waiter that cancels at the same time increments it again, and the next sweep finds the cell.
    if (Atomics.exchange(memory.words, GONE, 0) === 0) return false;
    for (let cell = this.head; cell !== 0; ) {
      const behind = memory.load(memory.behind(cell));
      if (kindOf(memory.load(memory.state(cell))) === CANCELLED) this.bury(cell);
      cell = behind;
    }
    return true;
  }

  /** Gives back a cancelled cell, or a cell of a dead thread, and removes it from the queue. */
  bury(cell: number): void {
    this.#memory.store(this.#memory.state(cell), UNUSED);
    this.unlink(cell);
  }

  /**
   * Rebuilds the queue after a death during a change: it consists of all cells with a ticket, in the order of the
   * tickets.
   */
  relink(): void {
    const memory = this.#memory;
    const cells: number[] = [];
    const highest = memory.load(HIGHEST);
    for (let cell = 1; cell <= highest; cell++) {
      const kind = kindOf(memory.load(memory.state(cell)));
      const isQueued = isPending(kind) || kind === CANCELLED;
      if (isQueued && memory.load(memory.ticket(cell)) !== 0) cells.push(cell);
    }
    // Tickets wrap around, so their difference gives the order.
    cells.sort((a, b) => (memory.load(memory.ticket(a)) - memory.load(memory.ticket(b))) | 0);
    cells.forEach((cell, index) => {
      memory.store(memory.ahead(cell), cells[index - 1] ?? 0);
      memory.store(memory.behind(cell), cells[index + 1] ?? 0);
    });
    memory.store(LENGTH, cells.length);
    memory.store(TAIL, cells.at(-1) ?? 0);
    memory.store(HEAD, cells[0] ?? 0);
    memory.store(GONE, cells.length);
  }

  #append(cell: number): void {
    const memory = this.#memory;
    const tail = this.tail;
    const ticket = (memory.load(TICKETS) + 1) | 0 || 1;
    memory.store(TICKETS, ticket);
    memory.store(memory.ahead(cell), tail);
    memory.store(memory.behind(cell), 0);
    memory.store(memory.ticket(cell), ticket);
    memory.store(tail === 0 ? HEAD : memory.behind(tail), cell);
    memory.store(TAIL, cell);
    memory.store(LENGTH, this.length + 1);
  }

  #isSweepDue(gone: number): boolean {
    return gone >= SWEEP_FROM && gone * 2 >= this.length;
  }

  #claimFrom(first: number, last: number, tries: number): number {
    const memory = this.#memory;
    for (let cell = first, tried = 0; cell <= last && tried < tries; cell++, tried++) {
      if (memory.load(memory.state(cell)) !== UNUSED) continue;
      // Before the claim: a search for dead threads stops at this number.
      memory.raise(HIGHEST, cell);
      if (!memory.swap(memory.state(cell), UNUSED, stateOf(CLAIMED, this.#owner))) continue;
      this.#hint = cell + 1;
      return cell;
    }
    this.#hint = 1;
    return 0;
  }
}
