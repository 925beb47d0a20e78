// Objects that are not in use: evicted, restored, and at last deleted; in real workerd.
import { expect, test } from "vitest";
import { call } from "./killed-workerd.ts";
import { startWorker, stateOf, type TestWorker } from "./worker.ts";

const HOST = "upstream.example.com";
const LEASE = { maxSlotPerHost: 1, maxSlotPerIp: -1, zombieTimeoutSeconds: 60, maxHoldSeconds: 60 };
/** workerd evicts an object that has been idle for ten seconds, and may need some more. */
const IDLE_MS = 13_000;

/** Reports how often the object was created, without a call to its service. */
const counting = (before: string, options: object = {}) => `
  ${before}
  import { serve, slotFetch, slotObject } from "@slotkeeper/cloudflare";
  let [created, alarms] = [0, 0];
  export class Slots extends slotObject(${JSON.stringify(LEASE)}, ${JSON.stringify(options)}) {
    #ctx;
    constructor(ctx, env) { super(ctx, env); this.#ctx = ctx; if (ctx.id.name?.startsWith("host:")) created++; }
    alarm() { alarms++; return super.alarm(); }
    fetch(request) {
      if (!request.url.endsWith("/bytes")) return super.fetch(request);
      return Response.json({ tables: [...this.#ctx.storage.sql.exec("SELECT name FROM sqlite_master WHERE name LIKE 'slotkeeper%'")].length });
    }
  }
  const options = { auth: "the-shared-key-of-callers", internalToken: "the-bearer-of-operators" };
  export default {
    async fetch(request, env) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === "/created") return Response.json({ created, alarms });
      if (pathname === "/bytes") return env.SLOTS.get(env.SLOTS.idFromName("host:" + searchParams.get("key"))).fetch("http://host/bytes");
      return serve(request, env.SLOTS, options);
    },
  };
`;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const counts = async (worker: TestWorker) =>
  (await worker.ask("/created")).json() as Promise<{ created: number; alarms: number }>;

async function heldWhileAsleep(worker: TestWorker) {
  const granted = await call(worker, "acquire", { hostname: HOST, bucket: "a", waitMs: 1_000 });
  // A session that waits, and whose client left: its timers are what could keep the object awake.
  await call(worker, "acquire", { hostname: HOST, bucket: "b", waitMs: 50 });
  await pause(IDLE_MS);
  const slotToken = granted["slotToken"];
  const isHeld = (await call(worker, "renew", { slotToken }))["result"];
  const other = (await call(worker, "acquire", { hostname: HOST, bucket: "c", waitMs: 50 }))["result"];
  return { isHeld, other, created: (await counts(worker)).created };
}

test("an object without calls is evicted, and restored later with its lease intact; with usual timers it is not", async () => {
  const asleep = await startWorker({ script: counting("") });
  const usual = `import { CallClock } from "../src/call-clock.ts"; CallClock.prototype.end = () => {};`;
  const awake = await startWorker({ script: counting(usual) });
  const [rested, control] = await Promise.all([heldWhileAsleep(asleep), heldWhileAsleep(awake)]);
  expect(rested).toEqual({ isHeld: "ok", other: "pending", created: 2 });
  expect(control).toEqual({ isHeld: "ok", other: "pending", created: 1 });
});

test("the alarm of an unused host deletes its storage; the host starts again with higher fences", async () => {
  const script = counting("", { tidySeconds: 1 }).replace(
    JSON.stringify(LEASE),
    JSON.stringify({ ...LEASE, sessionIdleSeconds: 1, defaultGrantedCleanupDelay: 1, maxWaitMs: 1_000 }),
  );
  const worker = await startWorker({ script });
  const first = await call(worker, "acquire", { hostname: HOST, bucket: "a", waitMs: 1_000 });
  const { host: key } = (await stateOf(worker, HOST)) ?? { host: "" };
  const tables = async () => ((await (await worker.ask(`/bytes?key=${key}`)).json()) as { tables: number }).tables;
  expect(await tables()).toBe(2);
  // A host with a lease is in use.
  await expect.poll(async () => (await counts(worker)).alarms, { timeout: 5_000 }).toBeGreaterThan(0);
  expect(await tables()).toBe(2);
  await call(worker, "release", { slotToken: first["slotToken"] });
  await expect.poll(tables, { timeout: 20_000, interval: 200 }).toBe(0);
  expect(await stateOf(worker, HOST)).toBe(undefined);
  const again = await call(worker, "acquire", { hostname: HOST, bucket: "a", waitMs: 1_000 });
  expect(again["result"]).toBe("granted");
  expect(again["fence"]).toBeGreaterThan(first["fence"] as number);
});

test("a Worker whose configuration is wrong does not start, and the error lists the problems", async () => {
  const { ask } = await startWorker({
    script: `
      import { slotObject } from "@slotkeeper/cloudflare";
      export class Slots {}
      export default {
        fetch() {
          try {
            slotObject({ maxSlotPerHosts: 4, maxWaitMs: "long" });
          } catch (error) {
            return new Response(error.name + ": " + error.message);
          }
        },
      };
    `,
  });
  const text = await (await ask("/")).text();
  expect(text).toContain("ConfigError");
  expect(text).toContain("did you mean `maxSlotPerHost`?");
  expect(text).toContain("Expected `fairQueue.maxWaitMs` to be a number");
});
