/**
 * What the middleware of all frameworks shares: it takes a slot of the caller's tenant, and says how a request without a
 * slot is answered.
 *
 * TENANT1  A request waits for its slot for at most `timeoutMs`. If its caller disconnects, it leaves the queue.
 * TENANT2  A slot that is granted to a request whose caller has disconnected is released.
 * TENANT3  A request without a slot is answered 429 if its tenant uses all of its slots, and 503 if slots cannot be
 *     granted, both with `Retry-After`. The answer contains no text of the error, which may name internal addresses.
 * TENANT4  An error that no retry can solve, such as a wrong key, is an error of the framework.
 */
import { check, unexpected } from "../options.ts";
import { quietly } from "../timing.ts";

interface HeldSlot {
  release(): unknown;
}

interface WaitOptions {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** A gate with a limit per key, such as `SlotPool` and `KeyedSemaphore` of `slotkeeper`. */
export interface KeyedGate {
  /** Waits for a slot of this key. */
  acquire(key: string, options: WaitOptions): Promise<HeldSlot>;
}

/** A gate that makes a semaphore for each tenant, such as `SlotClient`. */
export interface SemaphoreGate {
  /** The semaphore with this name and number of slots. */
  semaphore(name: string, slots: number): { acquire(options: WaitOptions): Promise<HeldSlot> };
}

/** Options of `perTenant`. */
export type PerTenantOptions<Request> = {
  /** The tenant of a request. A request without one (`undefined`) needs no slot. */
  readonly tenant: (request: Request) => string | undefined;
  /** Longest wait for a slot, in milliseconds; `0` does not wait. Default: 5,000. */
  readonly timeoutMs?: number;
  /** Called with the error of each request that is answered 429 or 503, for example to log it. Default: none. */
  readonly onRefused?: (error: unknown, request: Request) => void;
} & (
  | {
      /** The service: each tenant has the semaphore `tenant:…`, which all processes share. */
      readonly gate: SemaphoreGate;
      /** Slots of each tenant. */
      readonly slots: number;
    }
  | {
      /** Slots of this process, with the limits of the gate. */
      readonly gate: KeyedGate;
      readonly slots?: undefined;
    }
);

/** How a request without a slot is answered. */
export class Refusal {
  readonly status: 429 | 503;
  readonly headers: { readonly "retry-after": string };
  readonly body: { readonly error: string };

  constructor({ code, retryAfterMs = LEAST_RETRY_MS }: SlotError) {
    const isBusy = code === "ACQUIRE_TIMEOUT" || code === "QUEUE_FULL";
    this.status = isBusy ? 429 : 503;
    this.headers = { "retry-after": `${Math.ceil(retryAfterMs / 1000)}` };
    this.body = { error: isBusy ? "Too many requests at a time" : "No slot is available" };
  }
}

interface SlotError {
  readonly code: string;
  readonly retryable: boolean;
  readonly retryAfterMs?: number;
}

const DEFAULT_TIMEOUT_MS = 5_000;
const LEAST_RETRY_MS = 1_000;
const KINDS = { gate: "an object", tenant: "a function", slots: "", timeoutMs: "", onRefused: "a function" } as const;
/** The brand of the errors of `slotkeeper` and of this client. */
const brand = Symbol.for("slotkeeper.error");

/**
 * `undefined`: the request has no tenant and needs no slot. `"gone"`: its caller has disconnected, so there is nothing to
 * answer.
 */
export type Outcome = HeldSlot | Refusal | "gone" | undefined;

export type TakeSlot<Request> = (request: Request, gone: AbortSignal) => Promise<Outcome>;

export function tenantSlots<Request>(options: PerTenantOptions<Request>): TakeSlot<Request> {
  const { tenant, timeoutMs = DEFAULT_TIMEOUT_MS, onRefused } = check(options, KINDS, "gate");
  check({ tenant }, KINDS, "tenant");
  if (!(timeoutMs >= 0)) throw unexpected("timeoutMs", "at least 0", timeoutMs);
  const acquire = acquirer(options);
  return async (request, gone) => {
    const key = tenant(request);
    if (key === undefined) return undefined;
    try {
      gone.throwIfAborted();
      const slot = await acquire(key, { signal: gone, timeoutMs });
      if (!gone.aborted) return slot;
      await slot.release();
      return "gone";
    } catch (error) {
      if (gone.aborted) return "gone";
      if (!isRetryable(error)) throw error;
      quietly(() => onRefused?.(error, request));
      return new Refusal(error);
    }
  };
}

function acquirer<Request>({ gate, slots }: PerTenantOptions<Request>): KeyedGate["acquire"] {
  if (!("semaphore" in gate)) return (key, options) => gate.acquire(key, options);
  // Refuses a wrong number at the start, not with the first request.
  const semaphoreOf = (name: string) => gate.semaphore(`tenant:${name}`, slots as number);
  semaphoreOf("any");
  return (key, options) => semaphoreOf(key).acquire(options);
}

function isRetryable(error: unknown): error is SlotError {
  const { [brand]: isOurs, retryable } = Object(error) as { [brand]?: boolean; retryable?: boolean };
  return isOurs === true && retryable === true;
}
