import type { QueueCounts, QueueOverview, SessionTotals } from "@slotkeeper/queue";
import { dismiss, postToController } from "../config/controller.ts";
import { ControllerError } from "../config/errors.ts";
import type { ControllerAddress, Identity } from "../config/settings.ts";

export interface PushContext {
  readonly address: ControllerAddress;
  readonly identity: Identity;
  readonly instance: string;
  readonly version: string;
  readonly configVersion: string;
  readonly overview: QueueOverview;
  readonly sessions: SessionTotals;
  /** The number of hosts whose releases are being spaced. */
  readonly smoothHosts: number;
}

interface CountsEvent {
  readonly body: object;
  /** The counts that the controller has after this event. */
  readonly upTo: QueueCounts;
}

/**
 * Sends the counts to the control plane, as differences.
 *
 * PUSH1  Every count goes into exactly one event: the next event starts where the last accepted one ends.
 * PUSH2  If the outcome of an event is unknown (no answer, a 5xx of a gateway), the same bytes with the same `ts` are
 *     sent again before anything newer, until the event is accepted or known to be accepted (409). If the first attempt
 *     is refused (4xx), the counts go into the next event. If a later attempt is refused, that says nothing about the
 *     first.
 * PUSH3  `ts` only grows.
 *
 * So no count is lost while the process lives, and a controller that accepts each (`instance_id`, `ts`) once counts
 * nothing twice. Without that check, a controller counts an event twice if it accepted the event and its answer was
 * lost; no sender can prevent that. A crash loses the counts since the last push. Memory: one event.
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

  /**
   * Pushes run one after the other, because an event must not overtake the one before it. Rejects with a
   * `ControllerError`.
   */
  push(context: () => Promise<PushContext>): Promise<void> {
    const pushed = this.#last.then(() => this.#push(context));
    this.#last = pushed.catch(() => {});
    return pushed;
  }

  /** The counts that the controller is not known to have accepted. */
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
      // A 2xx means that the event is accepted. The body does not matter.
      dismiss(await postToController(address, "metrics", event.body, this.#timeoutMs));
    } catch (error) {
      if (!(error instanceof ControllerError) || error.kind !== "refused") throw error;
      if (!isAgain) this.#unsure = undefined;
      if (!isAgain || error.status !== 409) throw error;
    }
    this.#unsure = undefined;
    this.#taken = event.upTo;
  }

  #nextEvent({
    identity,
    instance,
    version,
    configVersion,
    overview,
    sessions,
    smoothHosts,
  }: PushContext): CountsEvent {
    const { counts, at } = overview;
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

/** Without `returned`, which the original service does not know. */
function difference(counts: QueueCounts, before: QueueCounts | undefined): Record<string, number> {
  const names = (Object.keys(counts) as (keyof QueueCounts)[]).filter((name) => name !== "returned");
  return Object.fromEntries(names.map((name) => [name, counts[name] - (before?.[name] ?? 0)]));
}
