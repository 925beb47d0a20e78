// A Durable Object that lets a test in Node call its store. The test is the clock.

import { HostRows } from "../src/host-rows.ts";
import { SqlStore } from "../src/sql-store.ts";
import type { ObjectState } from "../src/workers.ts";
import { pack, unpackCall } from "./store-calls.ts";

export class StoreObject {
  readonly #ctx: ObjectState & { abort(reason: string): void };
  #now = 0;
  #store: SqlStore | undefined;

  constructor(ctx: ObjectState & { abort(reason: string): void }) {
    this.#ctx = ctx;
  }

  async fetch(request: Request): Promise<Response> {
    const { name, args, now } = unpackCall(await request.text());
    this.#now = now;
    if (name === "abort") this.#ctx.abort("the test ends this object");
    this.#store ??= this.#open();
    const call = this.#store[name as "read"] as (...args: unknown[]) => unknown;
    return new Response(pack(await call(...args)));
  }

  #open(): SqlStore {
    const clock = { now: () => this.#now, setTimer: () => undefined, clearTimer: () => {} };
    const rows = new HostRows(this.#ctx.storage, () => {});
    return new SqlStore({ rows, clock, graceMs: 0, newTokenKey: () => "key" });
  }
}

export default {
  fetch(request: Request, env: { STORE: { get(id: unknown): StoreObject; idFromName(name: string): unknown } }) {
    return env.STORE.get(env.STORE.idFromName("one")).fetch(request);
  },
};
