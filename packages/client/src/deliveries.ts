/**
 * Calls that must reach the service although no caller waits for them any more: releases and cancellations.
 *
 * DELIVER1  They are repeated until the service has them or until `untilAt`: a release until its lease would have
 *     ended, a cancellation for some seconds, after which the service ends the session by itself.
 * DELIVER2  Nothing here throws. `undefined` means that the call was not delivered.
 * DELIVER3  The tries keep a Node process alive for at most half a minute, however long the lease is.
 */
import { RefusedError } from "./errors.ts";
import type { WaitUntil } from "./options.ts";
import { backoffMs, now, quietly, sleep } from "./timing.ts";
import type { Call } from "./transport.ts";

/** The delays up to this one last for less than half a minute. */
const TRIES_ALIVE = 10;

/** With `isIdle`, the pauses between the tries do not keep a Node process alive. */
export async function deliver<T>(
  call: Call,
  name: "acquire" | "release" | "cancel",
  body: object,
  untilAt: number,
  isIdle?: boolean,
): Promise<T | undefined> {
  for (let failures = 1; ; failures++) {
    try {
      return (await call<T>(name, body)).reply;
    } catch (error) {
      const delay = backoffMs(failures);
      if (error instanceof RefusedError || now() + delay > untilAt) return undefined;
      await sleep(delay, isIdle || failures > TRIES_ALIVE);
    }
  }
}

/** Passes a delivery to the `waitUntil` of the host. If that throws, the delivery continues anyway. */
export function promise(waitUntil: WaitUntil | undefined, delivery: Promise<unknown>): void {
  quietly(() => waitUntil?.(delivery));
}
