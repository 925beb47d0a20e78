// The store conformance suite on the SQL store, in real workerd.
import type { BookRecord, HostStore } from "@slotkeeper/queue";
import { describeHostStore } from "@slotkeeper/testkit/store-conformance";
import { pack, unpack } from "./store-calls.ts";
import { keepWorker } from "./worker.ts";

describeHostStore("The store of a Durable Object", {
  async open() {
    const script = `export { default, StoreObject } from "./store-object.ts";`;
    const worker = await keepWorker({ script, objects: { STORE: "StoreObject" } });
    let now = 1e12;
    const call = async (name: string, args: readonly unknown[]): Promise<unknown> => {
      const response = await worker.ask("/", { method: "POST", body: pack({ name, args, now }) });
      if (!response.ok) throw new Error(await response.text());
      return unpack(await response.text());
    };
    const store = new Proxy({ isShared: false } as HostStore, {
      get: (known, name) => {
        if (name === "isShared" || name === "then") return known[name as "isShared"];
        return name === "watch" ? () => () => {} : (...args: unknown[]) => call(String(name), args);
      },
    });
    return {
      store,
      other: store,
      pass: async (ms: number) => {
        now += ms;
      },
      restart: async () => {
        await call("abort", []).catch(() => {});
        return store;
      },
      // RESTORE3: no client has a poll open at the new process.
      afterRestart: (record: BookRecord) => (record.kind === "waiter" ? { ...record, awayAt: now } : record),
      close: () => worker.stop(),
    };
  },
  skip: { push: "an object is the only instance of its host" },
});
