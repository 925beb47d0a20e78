/** Creates the errors with which a limiter refuses a caller. Their messages are sentences. */
import { AcquireTimeoutError, ClosedError, QueueFullError, SlotExpiredError, withStackOf } from "../errors.ts";

/** The parts of a limiter that the messages need. */
interface Refuser {
  readonly policy: { readonly name: string | undefined; readonly maxWaiters: number };
  readonly capacity: number;
  readonly inUse: number;
  readonly waiting: number;
}

const nameOf = ({ policy: { name } }: Refuser): string => (name === undefined ? "a limiter" : `limiter "${name}"`);

/** The limits at the time of the refusal, and their use. */
function met({ policy, capacity, inUse }: Refuser, key: unknown, waiting: number) {
  return { semaphore: policy.name, key, capacity, inUse, waiting };
}

const useOf = ({ capacity, inUse, waiting }: ReturnType<typeof met>): string =>
  `(${inUse} of ${capacity} in use, ${waiting || "none"} waiting)`;

function worded<E extends Error>(error: E, message: string): E {
  error.message = message;
  return error;
}

export function timeoutError(limiter: Refuser, key: unknown, waitedMs: number, trace?: Error): AcquireTimeoutError {
  const limits = met(limiter, key, Math.max(0, limiter.waiting - 1));
  const message = `Waited ${Math.round(waitedMs)} ms for a slot of ${nameOf(limiter)} ${useOf(limits)}`;
  return withStackOf(trace, () => worded(new AcquireTimeoutError({ ...limits, waitedMs }), message));
}

export function queueFullError(limiter: Refuser, key: unknown, waiting: number): QueueFullError {
  const limits = met(limiter, key, waiting);
  return refusal(limiter, limits, `The queue of ${nameOf(limiter)} is full ${useOf(limits)}`);
}

export function pausedError(limiter: Refuser, key: unknown): QueueFullError {
  const limits = met(limiter, key, limiter.waiting);
  return refusal(limiter, limits, `No caller may wait: ${nameOf(limiter)} is paused ${useOf(limits)}`);
}

function refusal({ policy }: Refuser, limits: ReturnType<typeof met>, message: string): QueueFullError {
  return worded(new QueueFullError({ ...limits, maxWaiters: policy.maxWaiters }), message);
}

export function closedError(limiter: Refuser, reason: unknown): ClosedError {
  const error = new ClosedError({ semaphore: limiter.policy.name }, reason);
  return typeof reason === "string" ? error : worded(error, `No slot is granted: ${nameOf(limiter)} is closed`);
}

export function expiredError(limiter: Refuser, key: unknown, heldMs: number): SlotExpiredError {
  const message = `A slot of ${nameOf(limiter)} expired after ${Math.round(heldMs)} ms and was taken back`;
  return worded(new SlotExpiredError({ semaphore: limiter.policy.name, key, heldMs }), message);
}

/** The reason for waiters that `clear` removes without a reason; the same kind as that of an `AbortController`. */
export function clearedError(limiter: Refuser): DOMException {
  return new DOMException(`The queue of ${nameOf(limiter)} was cleared`, "AbortError");
}
