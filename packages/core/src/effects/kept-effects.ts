/**
 * The most common effects, created once and reused: `delay(0)`, and acquiring and releasing a given semaphore. Using
 * one allocates nothing.
 *
 * A kept effect is its own iterator and has no state, so any number of programs may use it at the same time. The second
 * call of `next` differs from the first by the value of the resumption: only a task that parked through a `Refusal` is
 * resumed with `RESUMED`.
 *
 * The code here avoids the path through `attempt` of the scheduler. `perform.ts` does the same for effects that arrive
 * in any other way; `ways-to-yield.test.ts` compares the two.
 */
import {
  ACQUIRE,
  active,
  askedOutside,
  DELAY,
  EffectNode,
  type IteratorStep,
  type Operation,
  PARK,
  type Program,
  RELEASE,
} from "./effect.ts";
import type { SemaphoreState } from "./semaphore.ts";

/**
 * The value of a resumption after a `Refusal`. It is not exported directly, because engines treat only a local `const`
 * as a constant.
 */
const resumed = Symbol("resumed");
export const RESUMED: symbol = resumed;

/** The iterator result of an effect that is done. Kept effects have no value. */
const DONE: IteratorStep = Object.freeze({ done: true, value: undefined });

/**
 * The iterator result of an effect that must park. It is also the effect that the program then yields: the same
 * operation, resumed with `RESUMED`.
 */
export class Refusal extends EffectNode<unknown> {
  /** The semaphore to wait for; `undefined` for `delay(0)`. */
  readonly semaphore: SemaphoreState | undefined;

  constructor({ op, subject }: EffectNode<unknown>, semaphore: SemaphoreState | undefined) {
    super(op, subject, undefined);
    this.done = false;
    this.value = this;
    this.semaphore = semaphore;
  }

  /** For code that runs a program by hand and delegates to what it yields. */
  override *[Symbol.iterator](): Program<unknown> {
    yield* new EffectNode<void>(this.op, this.subject, undefined);
    return resumed;
  }
}

/** `RESUMED` for a refused kept effect, otherwise `undefined`. */
export function answerTo(effect: EffectNode<unknown>): symbol | undefined {
  return effect instanceof Refusal ? resumed : undefined;
}

abstract class KeptEffect extends EffectNode<void> {
  readonly refusal: Refusal;

  constructor(op: Operation, subject: unknown, semaphore?: SemaphoreState) {
    super(op, subject, undefined);
    this.refusal = new Refusal(this, semaphore);
  }

  override [Symbol.iterator](): Iterator<EffectNode<unknown>, void, unknown> {
    return this as unknown as Iterator<EffectNode<unknown>, void, unknown>;
  }

  /** The general path, for a task that is interrupted or out of steps, and for a semaphore of another run. */
  protected ask(): IteratorStep {
    return (active ?? askedOutside()).attempt(this) === PARK ? this.refusal : DONE;
  }
}

class PauseEffect extends KeptEffect {
  override next(sent: unknown): IteratorStep {
    if (sent === resumed) return DONE;
    return active === undefined ? askedOutside() : this.refusal;
  }
}

/** `delay(0)`. */
export const PAUSE = new PauseEffect(DELAY, 0);

export class AcquireEffect extends KeptEffect {
  readonly #semaphore: SemaphoreState;

  constructor(handle: unknown, semaphore: SemaphoreState) {
    super(ACQUIRE, handle, semaphore);
    this.#semaphore = semaphore;
  }

  override next(sent: unknown): IteratorStep {
    if (sent === resumed) return DONE;
    const scheduler = active;
    const semaphore = this.#semaphore;
    if (semaphore.owner !== scheduler) return this.ask();
    const task = scheduler.running;
    if (task === undefined || task.isInterrupted || scheduler.steps >= scheduler.maxSteps) return this.ask();
    if (semaphore.available === 0) return this.refusal;
    scheduler.steps++;
    semaphore.take(task);
    return DONE;
  }
}

export class ReleaseEffect extends KeptEffect {
  readonly #semaphore: SemaphoreState;

  constructor(handle: unknown, semaphore: SemaphoreState) {
    super(RELEASE, handle);
    this.#semaphore = semaphore;
  }

  override next(): IteratorStep {
    const scheduler = active;
    const semaphore = this.#semaphore;
    if (semaphore.owner !== scheduler) return this.ask();
    const task = scheduler.running;
    if (task === undefined || task.isInterrupted || scheduler.steps >= scheduler.maxSteps) return this.ask();
    scheduler.steps++;
    semaphore.release(task);
    return DONE;
  }
}
