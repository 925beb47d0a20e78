import { Deliveries } from "./deliveries.ts";
import { FailurePolicy } from "./failure-policy.ts";
import { namedHost } from "./host-name.ts";
import {
  type AcquireOptions,
  checkAcquire,
  checkWork,
  type ResolvedOptions,
  resolveOptions,
  type SlotClientOptions,
} from "./options.ts";
import { runWithSlot, type Work } from "./run-with-slot.ts";
import { ServiceSemaphore } from "./service-semaphore.ts";
import { HeldSlot, type ServiceSlot } from "./slot.ts";
import { type Ask, SlotWait } from "./slot-wait.ts";
import { endSpan, startSpan } from "./telemetry.ts";
import { Transport } from "./transport.ts";

export interface ClientStats {
  /** Slots held now; those let through without one are not among them. */
  readonly held: number;
  readonly granted: number;
  readonly released: number;
  readonly lost: number;
  /** Let through without a slot by `onFailure`. */
  readonly unguarded: number;
}

/** Slots of a Slotkeeper service. */
export class SlotClient {
  readonly #options: ResolvedOptions;
  readonly #transport: Transport;
  readonly #deliveries: Deliveries;
  readonly #policy: FailurePolicy;
  #granted = 0;
  #released = 0;
  #lost = 0;

  constructor(options: SlotClientOptions) {
    this.#options = resolveOptions(options);
    this.#transport = new Transport(this.#options);
    this.#deliveries = new Deliveries(this.#transport, this.#options.perRequestTimeoutMs);
    this.#policy = new FailurePolicy(this.#options.onFailure);
  }

  /** Waits for a slot. Rejects with the errors of `errors.ts`, or with the signal's own reason. */
  async acquire(options: AcquireOptions): Promise<ServiceSlot> {
    checkAcquire(options);
    const { maxWaitMs, waitUntil, hashHostname } = this.#options;
    const { hostname, bucket, signal, onPending } = options;
    const waitMs = options.maxWaitMs ?? maxWaitMs;
    const ask = { hostname, bucket, signal, onPending, waitMs, waitUntil: options.waitUntil ?? waitUntil };
    return this.#acquire(ask, hashHostname);
  }

  /** Runs the work while it holds a slot, and gives the slot back whatever happens. */
  async run<T>(options: AcquireOptions, work: Work<T>): Promise<Awaited<T>> {
    checkWork(work);
    return runWithSlot(await this.acquire(options), work, options.signal);
  }

  /** A semaphore of the service, shared by all that use the name: the library's `Semaphore`, for a fleet. */
  semaphore(name: string, slots: number): ServiceSemaphore {
    const waitUntil = this.#options.waitUntil;
    return new ServiceSemaphore(name, slots, (ask) => this.#acquire({ ...ask, waitUntil }, false));
  }

  stats(): ClientStats {
    const [granted, released, lost] = [this.#granted, this.#released, this.#lost];
    return { held: granted - released - lost, granted, released, lost, unguarded: this.#policy.passed };
  }

  async #acquire(asked: Omit<Ask, "named" | "traceparent">, isHashed: boolean): Promise<ServiceSlot> {
    asked.signal?.throwIfAborted();
    const { hostname, bucket = "" } = asked;
    const span = startSpan(this.#options.telemetry, "wait", { hostname, bucket });
    try {
      const ask = { ...asked, named: await namedHost(hostname, isHashed), traceparent: span?.traceparent };
      const slot = await this.#wait(ask);
      endSpan(span, undefined, slot.guarded ? "granted" : "unguarded");
      return slot;
    } catch (error) {
      endSpan(span, error);
      throw error;
    }
  }

  async #wait(ask: Ask): Promise<ServiceSlot> {
    const [transport, deliveries, policy] = [this.#transport, this.#deliveries, this.#policy];
    const options = this.#options;
    const result = await new SlotWait({ options, transport, deliveries, policy }, ask).result();
    const { hostname, bucket = "", named, waitUntil } = ask;
    const span = startSpan(options.telemetry, "hold", { hostname, bucket });
    const parts = { transport, deliveries, named, hostname, waitUntil, span, timeoutMs: options.perRequestTimeoutMs };
    if (typeof result === "function") {
      return new HeldSlot({ token: "", fence: 0, leaseMs: undefined }, { ...parts, onEnd: result });
    }
    const { slotToken: token, fence, leaseMs, limit } = result;
    policy.learn(hostname, limit ?? ask.slots);
    this.#granted++;
    const onEnd = (isLost: boolean) => {
      if (isLost) this.#lost++;
      else this.#released++;
      ask.held?.delete(token);
    };
    const slot = new HeldSlot({ token, fence, leaseMs }, { ...parts, onEnd });
    ask.held?.set(token, slot);
    return slot;
  }
}
