import type { QueueCounts, QueueOverview } from "@slotkeeper/queue";
import type { ControllerAddress, Identity } from "../config/settings.ts";
import { dismiss, postToController } from "./controller-client.ts";
import { ControllerError } from "./controller-error.ts";

export interface PushContext {
  readonly address: ControllerAddress;
  readonly identity: Identity;
  readonly instance: string;
  readonly version: string;
  readonly configVersion: string;
  readonly overview: QueueOverview;
  /** Hosts whose releases are being spaced. */
  readonly smoothHosts: number;
}

interface CountsEvent {
  readonly body: object;
  /** What the controller knows once it has it. */
  readonly upTo: QueueCounts;
}

/**
 * Sends the counts to the control plane, as differences.
 *
 * PUSH1 every count goes into exactly one event: the next event starts where the last one that was taken ends. PUSH2 an event
 * whose fate is not known (no answer, a gateway's 5xx) is sent again as it was, byte by byte, with the `ts` it had,
 * before anything newer, until it is taken or known to be (409); one that was refused (4xx) at its first sending was not
 * taken, and its counts go into the next. A refusal of a second sending says nothing of the first. PUSH3 `ts` only grows. So
 * nothing is lost while the process lives, and a controller that takes an (`instance_id`, `ts`) once counts nothing twice. Not promised, because no sender can: that a controller without such a check counts once what it took and answered
 * into the void. A crash loses what was counted since the last push. Memory: one event.
 */
export class MetricsPush {
  readonly #timeoutMs: number;
  #taken: QueueCounts | undefined;
  #unsure: CountsEvent | undefined;
  #lastTs = 0;
  #last: Promise<void> = Promise.resolve();

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** One after the other: an event must not overtake the one it continues. Rejects with a `ControllerError`. */
  push(context: () => Promise<PushContext>): Promise<void> {
    const pushed = this.#last.then(() => this.#push(context));
    this.#last = pushed.catch(() => {});
    return pushed;
  }

  /** What the controller is not known to have taken. */
  untaken(counts: QueueCounts): Record<string, number> {
    return difference(counts, this.#taken);
  }

  async #push(context: () => Promise<PushContext>): Promise<void> {
    if (this.#unsure !== undefined) await this.#send((await context()).address, this.#unsure, true);
    const now = await context();
    await this.#send(now.address, this.#nextEvent(now), false);
  }

  async #send(address: ControllerAddress, event: CountsEvent, isAgain: boolean): Promise<void> {
    this.#unsure = event;
    try {
      // A 2xx means accepted, whatever the body is.
      dismiss(await postToController(address, "metrics", event.body, this.#timeoutMs));
    } catch (error) {
      if (!(error instanceof ControllerError) || error.kind !== "refused") throw error;
      if (!isAgain) this.#unsure = undefined;
      if (!isAgain || error.status !== 409) throw error;
    }
    this.#unsure = undefined;
    this.#taken = event.upTo;
  }

  #nextEvent({ identity, instance, version, configVersion, overview, smoothHosts }: PushContext): CountsEvent {
    const { counts, sessions, at } = overview;
    this.#lastTs = Math.max(Math.floor(at), this.#lastTs + 1);
    const { total, pending, granted, throttled, timeout } = sessions;
    const event = {
      type: "slot_handler.snapshot",
      ts: this.#lastTs,
      configVersion,
      counts: difference(counts, this.#taken),
      sessions: { total, pending, granted, throttled, timeout },
      smoothHosts,
      appName: identity.appName,
      appVersion: identity.appVersion ?? version,
      role: identity.role,
      instanceId: instance,
    };
    const body = { source: "slot-handler", env: identity.env ?? "", instance_id: instance, events: [event] };
    return { body, upTo: { ...counts } };
  }
}

function difference(counts: QueueCounts, before: QueueCounts | undefined): Record<string, number> {
  const names = Object.keys(counts) as (keyof QueueCounts)[];
  return Object.fromEntries(names.map((name) => [name, counts[name] - (before?.[name] ?? 0)]));
}
