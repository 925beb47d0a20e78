/**
 * The commonest effects, made once and kept: letting others run, and acquiring and releasing a given semaphore. Asking
 * for one allocates nothing.
 *
 * A kept effect is its own iterator and has no state, so any number of programs may be in the middle of it. The
 * second call of `next` differs from the first by the value the task was resumed with: a task that parked through a
 * `Refusal` is resumed with `RESUMED`, and no other task is.
 *
 * What is spelled out here spares the way through the scheduler's `attempt`. `perform.ts` does the same for effects that
 * arrive in any other way; `in-place.test.ts` compares the two.
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

/** What a task is resumed with after a `Refusal`. Not exported itself: engines take only such a one for a constant. */
const resumed = Symbol("resumed");
export const RESUMED: symbol = resumed;

/** What the iterator of an effect that was done returns: none of the kept ones has a value. */
const DONE: IteratorStep = Object.freeze({ done: true, value: undefined });

/**
 * What the iterator of an effect that must park returns, and the effect that its program yields then: the same
 * operation, answered by `RESUMED`.
 */
export class Refusal extends EffectNode<unknown> {
  /** What is waited for; nothing if others are let run. */
  readonly semaphore: SemaphoreState | undefined;

  constructor({ op, subject }: EffectNode<unknown>, semaphore: SemaphoreState | undefined) {
    super(op, subject, undefined);
    this.done = false;
    this.value = this;
    this.semaphore = semaphore;
  }

  /** For those who drive a program by hand and delegate to what it yields. */
  override *[Symbol.iterator](): Program<unknown> {
    yield* new EffectNode<void>(this.op, this.subject, undefined);
    return resumed;
  }
}

/** `undefined`, or the value that a kept effect is resumed with. */
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

  /** The long way, for a task that is interrupted or out of steps, and for a semaphore of another run. */
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
