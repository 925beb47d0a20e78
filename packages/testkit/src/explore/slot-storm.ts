/**
 * A storm of users on one source of slots, as a program for `exploreAsync`. Each user acquires, holds and releases,
 * round after round. The seed chooses which task runs when, down to single promise reactions.
 *
 * These rules must hold in every interleaving. The program checks them and fails with what it saw:
 * STORM1  Never more slots are held than the limit, in total or per key.
 * STORM2  Waiters of one key are served in the order of arrival.
 * STORM3  Every acquire ends: a lost wake-up leaves the simulation stuck, which is a `DeadlockError`.
 * STORM4  A user that was aborted or timed out holds nothing, and costs no other user a slot.
 * STORM5  A slot releases once: the second `release` returns false and frees no other slot.
 * STORM6  At the end nothing is held and no user waits.
 */
import { AcquireTimeoutError, type Clock, type Slot } from "slotkeeper";
import { delay, fromPromise, gather, log, type Program, spawn, type Task, tryCatch } from "slotkeeper/effects";
import type { SlotSource } from "./slot-source.ts";

/** How a user asks for its slot. */
export type Action = "wait" | "timeout" | "abort" | "try";

export interface Scenario {
  readonly source: (clock: Clock) => SlotSource;
  /** One per user: its key and what it does, round by round. */
  readonly users: readonly { readonly key: string; readonly actions: readonly Action[] }[];
}

/** How often each action ended with a slot and without one. */
export type Census = Record<Action, { granted: number; refused: number }>;

class Violation extends Error {
  override readonly name = "Violation";
}

export function slotStorm(scenario: Scenario): (clock: Clock) => Program<Census> {
  return (clock) => storm(scenario, new Watch(scenario.source(clock)));
}

function* storm(scenario: Scenario, watch: Watch): Program<Census> {
  const tasks: Task<void>[] = [];
  for (const [id, user] of scenario.users.entries()) {
    tasks.push(yield* spawn(useSlots(watch, user.key, user.actions), { name: `user ${id} of ${user.key}` }));
  }
  yield* gather(...tasks);
  watch.checkEmpty();
  return watch.census;
}

function* useSlots(watch: Watch, key: string, actions: readonly Action[]): Program<void> {
  for (const action of actions) {
    yield* delay(0);
    const slot = yield* ask(watch, key, action);
    watch.count(action, slot !== undefined);
    if (slot === undefined) continue;
    watch.enter(key);
    yield* log(`${action} granted, ${watch.inside} inside`);
    yield* delay(watch.nextHoldMs());
    watch.leave(key);
    if (!slot.release()) throw new Violation("The first release returned false (STORM5)");
    if (slot.release()) throw new Violation("The second release returned true (STORM5)");
  }
}

function* ask(watch: Watch, key: string, action: Action): Program<Slot | undefined> {
  const { source } = watch;
  if (action === "try") return source.tryAcquire(key);
  const controller = new AbortController();
  const request = { key, signal: controller.signal, ...(action === "timeout" && { timeoutMs: 1 }) };
  const promise = watch.seen(key, source.acquire(request));
  if (action === "abort") yield* spawn(abortSoon(controller), { daemon: true });
  const outcome = yield* tryCatch(fromPromise(promise));
  if (outcome.ok) return outcome.value;
  if (outcome.error === controller.signal.reason || outcome.error instanceof AcquireTimeoutError) return undefined;
  throw outcome.error;
}

function* abortSoon(controller: AbortController): Program<void> {
  yield* delay(0);
  yield* delay(0);
  controller.abort(new Error("changed my mind"));
}

/** Observes every grant and every release from outside. */
class Watch {
  readonly source: SlotSource;
  readonly census: Census = {
    wait: { granted: 0, refused: 0 },
    timeout: { granted: 0, refused: 0 },
    abort: { granted: 0, refused: 0 },
    try: { granted: 0, refused: 0 },
  };
  inside = 0;
  readonly #insideOf = new Map<string, number>();
  readonly #queueOf = new Map<string, Set<number>>();
  #nextTicket = 0;
  #holds = 0;
  readonly #overtaken = new Set<number>();
  #outOfTurn: string | undefined = undefined;

  constructor(source: SlotSource) {
    this.source = source;
  }

  count(action: Action, granted: boolean): void {
    this.census[action][granted ? "granted" : "refused"]++;
  }

  enter(key: string): void {
    const ofKey = (this.#insideOf.get(key) ?? 0) + 1;
    this.#insideOf.set(key, ofKey);
    this.inside++;
    const { limit, limitPerKey, inUse } = this.source;
    if (this.inside > limit) throw new Violation(`${this.inside} inside, the limit is ${limit} (STORM1)`);
    if (ofKey > limitPerKey) throw new Violation(`${ofKey} of "${key}" inside, the limit is ${limitPerKey} (STORM1)`);
    if (inUse < this.inside) throw new Violation(`${this.inside} inside, but ${inUse} in use (STORM1)`);
  }

  /** 0, 1, 2, 0, …: some holds are longer than a timeout, some are not. */
  nextHoldMs(): number {
    return this.#holds++ % 3;
  }

  leave(key: string): void {
    this.inside--;
    this.#insideOf.set(key, (this.#insideOf.get(key) ?? 0) - 1);
  }

  /**
   * Records the order of grants when the promises settle, not when the tasks resume, because the seed lets them resume
   * in any order. A user that leaves without a slot was not overtaken, even if its rejection takes some promise
   * reactions longer.
   */
  seen(key: string, promise: Promise<Slot>): Promise<Slot> {
    const ticket = this.#nextTicket++;
    const queue = this.#queueOf.get(key) ?? new Set<number>();
    this.#queueOf.set(key, queue.add(ticket));
    promise.then(
      () => {
        queue.delete(ticket);
        if (this.#overtaken.has(ticket)) this.#outOfTurn = `Request ${ticket} of "${key}" was overtaken`;
        for (const other of queue) if (other < ticket) this.#overtaken.add(other);
      },
      () => queue.delete(ticket),
    );
    return promise;
  }

  checkEmpty(): void {
    if (this.#outOfTurn !== undefined) throw new Violation(`${this.#outOfTurn} (STORM2)`);
    const { inUse, waiting } = this.source;
    if (inUse !== 0 || waiting !== 0) throw new Violation(`At the end ${inUse} in use, ${waiting} waiting (STORM6)`);
  }
}
