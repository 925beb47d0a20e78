import { type BatchReply, type HostPolicy, MemoryStore, type SlotStore, type Waiter } from "@slotkeeper/queue";
import { expect } from "vitest";
import type { VirtualDatabase } from "./virtual-database.ts";

/** One step of a history. Sessions and slots are named by number, so that a shrunk history stays readable. */
export type Step =
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "try" | "register"; readonly sessions: readonly SessionSpec[]; readonly instance: string }
  | {
      readonly kind: "release";
      readonly session: number;
      readonly hitAgoMs?: number | undefined;
      readonly status?: number | undefined;
      readonly uncollectedBy?: string | undefined;
    }
  | { readonly kind: "renew"; readonly session: number }
  | {
      readonly kind: "withdraw";
      readonly session: number;
      readonly end: "canceled" | "timeout";
      readonly instance: string;
    }
  | { readonly kind: "report"; readonly status: number }
  | { readonly kind: "limits"; readonly slots: number | undefined }
  | { readonly kind: "breaker"; readonly isOpen: boolean };

export interface SessionSpec {
  readonly session: number;
  readonly weight: number;
  readonly isGrantable: boolean;
}

const BUCKETS = 4;
/** Far in the past of the history: nothing starts at the time 0, where subtraction happens to be exact. */
export const START = 1_700_000_000_000;

/** The same history told to both stores; whatever one says, the other must say. */
export class TwoStores {
  readonly #memory: MemoryStore;
  readonly #database: VirtualDatabase;
  readonly #host: string;
  readonly #policy: HostPolicy;
  readonly #isSemaphore: boolean;
  readonly #clock: { now: number };
  readonly #tokens = new Map<number, { memory: string; postgres: string }>();
  #lastFence = 0;

  constructor(database: VirtualDatabase, host: string, policy: HostPolicy, isSemaphore: boolean, now: number) {
    this.#clock = { now };
    let tokens = 0;
    const clock = { now: () => this.#clock.now, setTimer: () => undefined, clearTimer: () => {} };
    this.#memory = new MemoryStore({
      clock,
      newToken: () => `m${++tokens}`,
      waiterTtlMs: 5_000,
      idleMs: Number.POSITIVE_INFINITY,
    });
    this.#database = database;
    this.#host = host;
    this.#policy = policy;
    this.#isSemaphore = isSemaphore;
  }

  get now(): number {
    return this.#clock.now;
  }

  async run(step: Step): Promise<void> {
    switch (step.kind) {
      case "pass":
        this.#clock.now += step.ms;
        await this.#database.pass(step.ms);
        return;
      case "try":
      case "register":
        return this.#batch(step);
      case "release":
        return this.#release(step);
      case "renew": {
        const tokens = this.#tokensOf(step.session);
        return this.#both((store, side) => store.renew({ slotToken: tokens[side] }));
      }
      case "withdraw": {
        const sessions = [{ session: this.#name(step.session), end: step.end, ttlMs: 60_000 }];
        const { instance } = step;
        return this.#both((store) => store.withdraw({ host: this.#host, instance, policy: this.#policy, sessions }));
      }
      case "report":
        return this.#both((store) => store.report({ host: this.#host, policy: this.#policy, status: step.status }));
      case "limits": {
        const limits = step.slots === undefined ? undefined : { slots: step.slots };
        const action = { kind: "limits", host: this.#host, policy: this.#policy, limits } as const;
        return this.#both((store) => store.operate(action));
      }
      case "breaker": {
        const action = { kind: "breaker", host: this.#host, policy: this.#policy, isOpen: step.isOpen } as const;
        return this.#both((store) => store.operate(action));
      }
    }
  }

  async #batch({ kind, sessions, instance }: Step & { kind: "try" | "register" }): Promise<void> {
    const waiters = sessions.map((spec) => this.#waiter(spec));
    const batch = { host: this.#host, instance, policy: this.#policy, isSemaphore: this.#isSemaphore, waiters };
    const call = (store: SlotStore) => (kind === "try" ? store.tryAcquire(batch) : store.register(batch));
    const memory = await call(this.#memory);
    const postgres = await call(this.#database.store);
    expect(withoutNames(postgres)).toEqual(withoutNames(memory));
    memory.verdicts.forEach((verdict, at) => {
      const other = postgres.verdicts[at];
      const spec = sessions[at];
      if (verdict.status !== "ACQUIRED" || other?.status !== "ACQUIRED" || spec === undefined) return;
      const isNew = this.#tokens.get(spec.session)?.postgres !== other.slot.slotToken;
      if (isNew) this.#lastFence = Math.max(this.#lastFence, this.#checkFence(other.slot.fence));
      this.#tokens.set(spec.session, { memory: verdict.slot.slotToken, postgres: other.slot.slotToken });
    });
  }

  #checkFence(fence: number): number {
    expect(Number.isSafeInteger(fence)).toBe(true);
    return fence;
  }

  #release({ session, hitAgoMs, status, uncollectedBy }: Step & { kind: "release" }): Promise<void> {
    const tokens = this.#tokensOf(session);
    const rest = { host: this.#host, policy: this.#policy, hitAgoMs, status, uncollectedBy };
    return this.#both((store, side) => store.release({ slotToken: tokens[side], ...rest }));
  }

  async #both(call: (store: SlotStore, side: "memory" | "postgres") => Promise<unknown>): Promise<void> {
    const memory = await call(this.#memory, "memory");
    expect(await call(this.#database.store, "postgres")).toEqual(memory);
  }

  #tokensOf(session: number): { memory: string; postgres: string } {
    return this.#tokens.get(session) ?? { memory: "none", postgres: "none" };
  }

  #waiter({ session, weight, isGrantable }: SessionSpec): Waiter {
    return {
      session: this.#name(session),
      bucket: session % BUCKETS === 0 ? "" : `bucket ${session % BUCKETS}`,
      weight,
      arrivedAt: session,
      ttlMs: 60_000,
      limit: this.#isSemaphore && session % 3 === 0 ? 1 + (session % 2) : undefined,
      openMs: session % 5 === 0 ? 150 : this.#policy.breaker.openMs,
      isGrantable,
    };
  }

  #name(session: number): string {
    return `${this.#host}/${session}`;
  }
}

/** Tokens and fences are each store's own; everything else is the same, to the last bit. */
function withoutNames({ verdicts, ...reply }: BatchReply) {
  return {
    ...reply,
    verdicts: verdicts.map((verdict) =>
      verdict.status === "ACQUIRED" ? { ...verdict, slot: { leaseMs: verdict.slot.leaseMs } } : verdict,
    ),
  };
}
