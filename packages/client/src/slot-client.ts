import { type FailurePolicy, failurePolicy } from "./failure-policy.ts";
import { namedHost } from "./host-name.ts";
import {
  ACQUIRE_KINDS,
  type AcquireOptions,
  check,
  type ResolvedOptions,
  resolveOptions,
  type SlotClientOptions,
} from "./options.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import { ServiceSemaphore } from "./service-semaphore.ts";
import { heldSlot, type ServiceSlot } from "./slot.ts";
import { type Ask, waitForSlot } from "./slot-wait.ts";
import { endSpan } from "./telemetry.ts";
import { quietly } from "./timing.ts";
import { type Call, transport } from "./transport.ts";

export interface ClientStats {
  readonly granted: number;
  /** Slots held now; work let through without one is not counted here. */
  readonly held: number;
  readonly lost: number;
  /** Let through without a slot by `onFailure`. */
  readonly unguarded: number;
}

/** Slots of a Slotkeeper service. */
export class SlotClient {
  readonly #options: ResolvedOptions;
  readonly #call: Call;
  readonly #policy: FailurePolicy;
  readonly #stats = { granted: 0, held: 0, lost: 0, unguarded: 0 };

  constructor(options: SlotClientOptions) {
    this.#options = resolveOptions(options);
    this.#call = transport(this.#options);
    this.#policy = failurePolicy(this.#options.onFailure, () => this.#stats.unguarded++);
  }

  /** Waits for a slot. Rejects with the errors of `errors.ts`, or with the signal's own reason. */
  async acquire(options: AcquireOptions): Promise<ServiceSlot> {
    check(options, ACQUIRE_KINDS, "hostname");
    const { maxWaitMs: waitMs = this.#options.maxWaitMs, ...ask } = options;
    return this.#acquire({ ...ask, waitMs }, this.#options.hashHostname);
  }

  /** Runs the work while it holds a slot, and gives the slot back whatever happens. */
  async run<T>(options: AcquireOptions, work: Work<T>): Promise<Awaited<T>> {
    return runWithSlot(work, () => this.acquire(options), options.signal);
  }

  /** A semaphore of the service, shared by all that use the name: the library's `Semaphore`, for a fleet. */
  semaphore(name: string, slots: number): ServiceSemaphore {
    return new ServiceSemaphore(name, slots, (ask) => this.#acquire(ask));
  }

  stats(): ClientStats {
    return { ...this.#stats };
  }

  async #acquire(asked: Asked, isHashed?: boolean): Promise<ServiceSlot> {
    asked.signal?.throwIfAborted();
    const span = this.#span("wait", asked);
    const { waitUntil = this.#options.waitUntil, hostname } = asked;
    try {
      const named = await namedHost(hostname, isHashed);
      const ask = { ...asked, waitUntil, named, traceparent: span?.traceparent };
      const slot = this.#slot(ask, await waitForSlot(this.#options, this.#call, this.#policy, ask));
      endSpan(span, slot.guarded ? "granted" : "unguarded");
      return slot;
    } catch (error) {
      endSpan(span, undefined, error);
      throw error;
    }
  }

  #span(name: "wait" | "hold", { hostname, bucket = "" }: Pick<Ask, "hostname" | "bucket">) {
    return quietly(() => this.#options.telemetry?.start(name, { hostname, bucket }));
  }

  #slot(ask: Ask, result: Awaited<ReturnType<typeof waitForSlot>>): ServiceSlot {
    const timeoutMs = this.#options.perRequestTimeoutMs;
    const parts = { ...ask, call: this.#call, timeoutMs, span: this.#span("hold", ask) };
    if (typeof result === "function") return heldSlot({ ...parts, onEnd: result });
    const { slotToken, fence, leaseMs, limit = ask.slots } = result;
    if (limit) this.#policy.learn(ask.hostname, limit);
    const stats = this.#stats;
    stats.granted++;
    stats.held++;
    const onEnd = (isLost: boolean) => {
      stats.held--;
      if (isLost) stats.lost++;
      ask.held?.delete(slotToken);
    };
    const slot = heldSlot({ ...parts, onEnd }, slotToken, fence, leaseMs);
    ask.held?.set(slotToken, slot);
    return slot;
  }
}

type Asked = Omit<Ask, "named" | "traceparent" | "waitUntil"> & Partial<Pick<Ask, "waitUntil">>;
