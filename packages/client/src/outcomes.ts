/** The errors a wait ends with, in sentences. */
import type { AcquireReply } from "@slotkeeper/protocol";
import { AcquireTimeoutError, OverloadedError, ThrottledError, UnavailableError } from "./errors.ts";
import type { CallFailure } from "./transport.ts";

export function throttled(hostname: string, reply: Extract<AcquireReply, { result: "throttled" }>): Error {
  const { throttleCode: status, throttleRetryAfter, reason } = reply;
  return new ThrottledError(
    `Requests to "${hostname}" are paused after status ${status}; try again in ${throttleRetryAfter} s.`,
    { hostname, status, retryAfterMs: throttleRetryAfter * 1000, reason },
  );
}

export function overloaded(hostname: string, retryAfterMs: number): Error {
  return new OverloadedError(`The service takes no more waiters; try again in ${retryAfterMs / 1000} s.`, {
    hostname,
    retryAfterMs,
  });
}

export function timedOut(hostname: string, waitedMs: number, position: number | undefined): Error {
  const place = position ? ` (position ${position} in the queue)` : "";
  return new AcquireTimeoutError(`Waited ${waitedMs} ms for a slot of "${hostname}"${place}.`, {
    hostname,
    waitedMs,
    position,
  });
}

export function unavailable(
  url: string,
  failure: CallFailure,
  fields: { hostname: string; attempts: number; waitedMs: number },
): Error {
  const { attempts, waitedMs } = fields;
  return new UnavailableError(
    `The service at ${url} is unavailable: ${failure.message} (call ${attempts}, after ${waitedMs} ms).`,
    fields,
    failure.cause ?? failure,
  );
}
