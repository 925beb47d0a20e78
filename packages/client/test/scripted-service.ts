/** A service that answers by a script, for tests on a fake clock and for answers that no real service gives. */
import { SlotClient, type SlotClientOptions } from "@slotkeeper/client";
import { vi } from "vitest";

export interface ScriptedCall {
  readonly name: "acquire" | "renew" | "release" | "cancel";
  readonly body: { readonly [field: string]: unknown };
  /** When it was sent, by the fake clock. */
  readonly at: number;
}

/** A body with status 200, or a whole response. A promise holds the call. */
export type Reply = object | Response | Promise<object | Response>;

const queryToken = "the token of a session";
export const pending = { result: "pending", queryToken, position: 1, waiters: 1, blockedBy: "host-limit" };
export const granted = {
  result: "granted",
  queryToken,
  slotToken: "a slot token of 22 characters",
  limit: 4,
  fence: 7,
  leaseMs: 30_000,
};

export class ScriptedService {
  readonly calls: ScriptedCall[] = [];
  /** The answer to the first call and to polls. */
  acquire: (call: ScriptedCall) => Reply = () => granted;
  renew: (call: ScriptedCall) => Reply = () => ({ result: "ok", leaseMs: 30_000 });
  release: (call: ScriptedCall) => Reply = () => ({ result: "ok" });
  cancel: (call: ScriptedCall) => Reply = () => ({ result: "canceled" });

  /** Takes over timers, `Date` and `performance`. Call `vi.useRealTimers()` after the test. */
  constructor() {
    vi.useFakeTimers();
  }

  client(options: Partial<SlotClientOptions> = {}): SlotClient {
    return new SlotClient({ url: "http://service.test", fetch: this.#fetch, ...options });
  }

  named(name: ScriptedCall["name"]): ScriptedCall[] {
    return this.calls.filter((call) => call.name === name);
  }

  readonly #fetch: typeof fetch = async (url, init) => {
    const name = String(url).split("/").at(-1) as ScriptedCall["name"];
    const call = { name, body: JSON.parse(String(init?.body)) as ScriptedCall["body"], at: performance.now() };
    this.calls.push(call);
    const aborted = new Promise<never>((_, reject) => {
      init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
    });
    const reply = await Promise.race([this[name](call), aborted]);
    return reply instanceof Response ? reply : Response.json(reply);
  };
}

/** The value after this time of the fake clock. */
export function after<T>(ms: number, value: T): Promise<T> {
  return new Promise((resolve) => setTimeout(() => resolve(value), ms));
}

/** The outcome of a promise, with the fake clock running until it is there, for at most `ms`. */
export async function outcomeOf(promise: Promise<unknown>, ms = 120_000): Promise<unknown> {
  let outcome: { value: unknown } | undefined;
  promise.then(
    (value) => (outcome = { value }),
    (error: unknown) => (outcome = { value: error }),
  );
  for (let waited = 0; waited < ms; waited += 10) {
    if (outcome) return outcome.value;
    await vi.advanceTimersByTimeAsync(10);
  }
  throw new Error(`no outcome after ${ms} ms`);
}
