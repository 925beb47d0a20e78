// What survives: a restart of workerd, of the object, and SIGKILL; in real workerd.
import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { call, killWhileGranting } from "./killed-workerd.ts";
import { SERVING, slotsClass, startWorker, stateOf, type TestWorker } from "./worker.ts";

let storage = "";

beforeEach(async () => {
  storage = await mkdtemp(join(tmpdir(), "slotkeeper-object-"));
});

afterEach(() => rm(storage, { recursive: true }));

const HOST = "upstream.example.com";
const ONE_SLOT = `${slotsClass({ maxSlotPerHost: 1, maxSlotPerIp: -1, pollWindowMs: 10_000 })} ${SERVING}`;

const acquire = (worker: TestWorker, bucket: string, waitMs: number, more: object = {}) =>
  call(worker, "acquire", { hostname: HOST, bucket, waitMs, ...more });

/** One holder and three waiters. */
async function fillQueue(worker: TestWorker) {
  const held = await acquire(worker, "holder", 1_000);
  const waiters: { [key: string]: unknown }[] = [];
  for (const bucket of ["a", "b", "c"]) waiters.push(await acquire(worker, bucket, 50));
  return { slotToken: held["slotToken"] as string, fence: held["fence"] as number, waiters };
}

/** Lets the waiters poll in reverse order, releases the slot, and returns in which order they get it, with the fences. */
async function servedInOrder(worker: TestWorker, tokens: readonly string[], slotToken: string) {
  const order: [number, number][] = [];
  const polls = tokens.map(async (queryToken, at) => {
    for (;;) {
      const answer = await call(worker, "acquire", { queryToken });
      if (answer["result"] === "pending") continue;
      order.push([at, answer["fence"] as number]);
      await call(worker, "release", { slotToken: answer["slotToken"] });
      return;
    }
  });
  await expect.poll(async () => (await stateOf(worker, HOST))?.pending).toBe(tokens.length);
  await call(worker, "release", { slotToken });
  await Promise.all(polls);
  return order;
}

test("a restart with the storage kept: the lease counts and renews, waiters keep their order, fences grow", async () => {
  const first = await startWorker({ script: ONE_SLOT, storage });
  const { slotToken, fence, waiters } = await fillQueue(first);
  await first.stop();
  const second = await startWorker({ script: ONE_SLOT, storage });
  const other = await acquire(second, "d", 50);
  expect(other["result"]).toBe("pending");
  await call(second, "cancel", { queryToken: other["queryToken"] });
  expect((await stateOf(second, HOST))?.inFlight).toBe(1);
  expect(await call(second, "renew", { slotToken })).toMatchObject({ result: "ok" });
  const tokens = waiters.map(({ queryToken }) => queryToken as string);
  const order = await servedInOrder(second, tokens.toReversed(), slotToken);
  expect(order.map(([at]) => at)).toEqual([2, 1, 0]);
  const fences = [fence, ...order.map(([, one]) => one)];
  expect(fences.toSorted((a, b) => a - b)).toEqual(fences);
});

test("the control: without the storage, the slot is given twice and the lease cannot be renewed", async () => {
  const first = await startWorker({ script: ONE_SLOT });
  const { slotToken, waiters } = await fillQueue(first);
  await first.stop();
  const second = await startWorker({ script: ONE_SLOT });
  expect((await acquire(second, "d", 1_000))["result"]).toBe("granted");
  expect(await call(second, "renew", { slotToken })).toMatchObject({ code: "SLOT_LOST" });
  expect(await call(second, "acquire", { queryToken: waiters[0]?.["queryToken"] })).toMatchObject({
    result: "timeout",
    reason: "unknown-token",
  });
});

test("the object is aborted four times under load: every request is served, never more than 4 at a time", async () => {
  const script = `
    import { serve, slotFetch, slotObject } from "@slotkeeper/cloudflare";
    import { SlotClient } from "@slotkeeper/client";
    export class Slots extends slotObject({ maxSlotPerHost: 4, maxSlotPerIp: -1 }) {
      #ctx;
      constructor(ctx, env) { super(ctx, env); this.#ctx = ctx; }
      fetch(request) {
        if (request.url.endsWith("/abort")) this.#ctx.abort("the test ends this object");
        return super.fetch(request);
      }
    }
    let [running, most] = [0, 0];
    export default {
      async fetch(request, env, ctx) {
        const { pathname } = new URL(request.url);
        const object = env.SLOTS.get(env.SLOTS.idFromName("host:" + env.HOST_KEY));
        if (pathname === "/abort") return object.fetch("http://host/abort").catch(() => new Response("aborted"));
        if (pathname === "/most") return new Response(String(most));
        const keeper = new SlotClient({ url: "http://slots", fetch: slotFetch(env.SLOTS), waitUntil: (p) => ctx.waitUntil(p) });
        return keeper.run({ hostname: "${HOST}", bucket: pathname }, async () => {
          most = Math.max(most, ++running);
          await scheduler.wait(20);
          running--;
          return new Response("served");
        });
      },
    };
  `;
  const HOST_KEY = createHash("sha256").update(HOST).digest("hex");
  const worker = await startWorker({ script, bindings: { HOST_KEY }, storage });
  const answers = Array.from({ length: 150 }, async (_, at) => (await worker.ask(`/bucket-${at % 5}`)).text());
  for (let aborts = 0; aborts < 4; aborts++) {
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(await (await worker.ask("/abort")).text()).toBe("aborted");
  }
  expect(new Set(await Promise.all(answers))).toEqual(new Set(["served"]));
  expect(await (await worker.ask("/most")).text()).toBe("4");
});

/** `SLOTKEEPER_KILLED_GRANTS=2000` for the long form. */
const GRANTS = Number(process.env["SLOTKEEPER_KILLED_GRANTS"] ?? 240);
const MANY_SLOTS = { maxSlotPerHost: 100_000, maxSlotPerIp: -1, zombieTimeoutSeconds: 600, maxHoldSeconds: 3600 };

test("SIGKILL of workerd while it answers grants: none is lost, and no fence is given twice", {
  timeout: 30_000 + 100 * GRANTS,
}, async () => {
  const run = await killWhileGranting({
    script: `${slotsClass(MANY_SLOTS)} ${SERVING}`,
    storage,
    grants: GRANTS,
    perLife: GRANTS / 4,
  });
  console.log(`SIGKILL: ${JSON.stringify(run)}`);
  expect(run).toMatchObject({ lost: 0, repeatedFences: 0 });
  expect(run.answered).toBeGreaterThanOrEqual(GRANTS);
  expect(run.kills).toBeGreaterThanOrEqual(3);
});

test("the control: a store that writes a moment later loses grants", async () => {
  const script = `
    import { serve, slotObject } from "@slotkeeper/cloudflare";
    const late = (storage) => ({
      sql: {
        exec(query, ...values) {
          if (!query.startsWith("INSERT OR REPLACE INTO slotkeeper_journal")) return storage.sql.exec(query, ...values);
          setTimeout(() => storage.sql.exec(query, ...values), 100);
          return [];
        },
      },
      transactionSync: (work) => work(),
      setAlarm: (at) => storage.setAlarm(at),
    });
    export class Slots extends slotObject(${JSON.stringify(MANY_SLOTS)}) {
      constructor(ctx, env) { super({ id: ctx.id, storage: late(ctx.storage), waitUntil: (p) => ctx.waitUntil(p) }, env); }
    }
    ${SERVING}
  `;
  const run = await killWhileGranting({ script, storage, grants: 60, perLife: 60 });
  expect(run.lost).toBeGreaterThan(0);
});
