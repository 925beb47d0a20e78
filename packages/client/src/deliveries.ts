/**
 * Calls that must reach the service although nobody waits for them any more: releases and cancellations.
 *
 * D1  A release is repeated until the service has it or the lease would be over anyway; a cancellation for a few seconds,
 *     after which the service ends the session by itself.
 * D2  Nothing here throws, and `waitUntil` gets every delivery.
 */
import type { AcquireReply, FirstCall } from "@slotkeeper/protocol";
import { RefusedError } from "./errors.ts";
import type { WaitUntil } from "./options.ts";
import { backoffMs, sleep } from "./timing.ts";
import type { CallName, Transport } from "./transport.ts";

const CANCEL_FOR_MS = 5_000;

export interface DeliveryOptions {
  readonly waitUntil: WaitUntil | undefined;
  readonly traceparent: string | undefined;
}

export class Deliveries {
  readonly #transport: Transport;
  readonly #timeoutMs: number;

  constructor(transport: Transport, timeoutMs: number) {
    this.#transport = transport;
    this.#timeoutMs = timeoutMs;
  }

  /** True once the service has it. */
  release(body: object, untilAt: number, { waitUntil, traceparent }: DeliveryOptions): Promise<boolean> {
    const delivered = this.#send("release", body, { untilAt, traceparent, isIdle: false }).then(
      (reply) => reply !== undefined,
    );
    waitUntil?.(delivered);
    return delivered;
  }

  /** By the session's token, or by the first call that may have made it. */
  cancel(session: string | FirstCall, { waitUntil, traceparent }: DeliveryOptions): void {
    const options = { untilAt: Date.now() + CANCEL_FOR_MS, traceparent, isIdle: true };
    const work = async () => {
      const queryToken = typeof session === "string" ? session : await this.#tokenOf(session, options);
      if (queryToken !== undefined) await this.#send("cancel", { queryToken }, options);
    };
    const delivered = work();
    waitUntil?.(delivered);
  }

  async #tokenOf(first: FirstCall, options: SendOptions): Promise<string | undefined> {
    const reply = await this.#send<AcquireReply>("acquire", first, options);
    return reply !== undefined && "queryToken" in reply ? reply.queryToken : undefined;
  }

  async #send<T>(name: CallName, body: object, { untilAt, traceparent, isIdle }: SendOptions): Promise<T | undefined> {
    for (let failures = 1; ; failures++) {
      try {
        return (await this.#transport.call<T>(name, body, { timeoutMs: this.#timeoutMs, traceparent, keepalive: true }))
          .reply;
      } catch (error) {
        if (error instanceof RefusedError) return undefined;
        const delay = backoffMs(failures);
        if (Date.now() + delay >= untilAt) return undefined;
        await sleep(delay, { isIdle });
      }
    }
  }
}

interface SendOptions {
  readonly untilAt: number;
  readonly traceparent: string | undefined;
  readonly isIdle: boolean;
}
