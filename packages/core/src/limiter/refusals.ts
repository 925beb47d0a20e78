/** The errors with which a limiter refuses, as sentences. */
import { AcquireTimeoutError, ClosedError, QueueFullError, SlotExpiredError } from "../errors.ts";

/** What the sentences need to know. */
interface Refuser {
  readonly policy: { readonly name: string | undefined };
  readonly capacity: number;
  readonly inUse: number;
  readonly waiting: number;
}

const nameOf = ({ policy: { name } }: Refuser): string => (name === undefined ? "a limiter" : `limiter "${name}"`);

const useOf = ({ capacity, inUse }: Refuser, waiting: number): string =>
  `${inUse} of ${capacity} in use, ${waiting === 0 ? "none" : waiting} waiting`;

const STACK_LIMIT = "stackTraceLimit";

/** Without a stack, as for semaphores: it would show our timer, and costs more than all the rest. */
export function timeoutError(limiter: Refuser, waitedMs: number): AcquireTimeoutError {
  const limit: unknown = Reflect.get(Error, STACK_LIMIT);
  Reflect.set(Error, STACK_LIMIT, 0);
  const waiting = Math.max(0, limiter.waiting - 1);
  const message = `Waited ${Math.round(waitedMs)} ms for a slot of ${nameOf(limiter)} (${useOf(limiter, waiting)})`;
  const error = new AcquireTimeoutError({ semaphore: limiter.policy.name, waitedMs, waiting }, message);
  Reflect.set(Error, STACK_LIMIT, limit);
  return error;
}

export function queueFullError(limiter: Refuser, waiting: number): QueueFullError {
  const message = `The queue of ${nameOf(limiter)} is full (${useOf(limiter, waiting)})`;
  return new QueueFullError({ semaphore: limiter.policy.name, waiting }, message);
}

export function pausedError(limiter: Refuser): QueueFullError {
  const { waiting } = limiter;
  const message = `Paused: ${nameOf(limiter)} takes nobody in (${useOf(limiter, waiting)})`;
  return new QueueFullError({ semaphore: limiter.policy.name, waiting }, message);
}

export function closedError(limiter: Refuser, reason: unknown): ClosedError {
  return new ClosedError({ semaphore: limiter.policy.name }, reason);
}

export function expiredError({ policy: { name: semaphore } }: Refuser, heldMs: number): SlotExpiredError {
  return new SlotExpiredError({ semaphore, heldMs });
}

/** What those get who are cleared away without a reason, as from an `AbortController`. */
export function clearedError(limiter: Refuser): DOMException {
  return new DOMException(`The queue of ${nameOf(limiter)} was cleared`, "AbortError");
}
