// A Worker in front of an upstream that allows four requests at a time, in real workerd.
import { connect } from "node:net";
import { startUpstream } from "@slotkeeper/testkit/upstream";
import { expect, test } from "vitest";
import { operator, slotsClass, startWorker, stateOf, type TestWorker, TOKEN } from "./worker.ts";

const HOST = "upstream.example.com";
const CONFIG = { hosts: { [HOST]: { maxSlotPerHost: 4, maxSlotPerIp: -1 } } };
const PROXY = `
  ${slotsClass(CONFIG)}
  async function answered(request, env, ctx) {
    const bucket = request.headers.get("x-bucket") ?? "one";
    const keeper = new SlotClient({ url: "http://slots", fetch: slotFetch(env.SLOTS), waitUntil: (p) => ctx.waitUntil(p) });
    return keeper.run({ hostname: "${HOST}", bucket, signal: request.signal }, async (slot) => {
      if (new URL(request.url).pathname === "/throw") throw new Error("the Worker fails");
      const response = await fetch(env.UPSTREAM, { headers: { "x-bucket": bucket }, signal: AbortSignal.any([request.signal, slot.signal]) });
      return new Response(await response.text(), response);
    });
  }
  export default {
    fetch(request, env, ctx) {
      if (request.url.includes("/api/")) return serve(request, env.SLOTS, { internalToken: "${TOKEN}" });
      const answer = answered(request, env, ctx);
      ctx.waitUntil(answer.catch(() => {}));
      return answer;
    },
  };
`;

async function statuses({ ask }: TestWorker, buckets: readonly string[]): Promise<number[]> {
  const asked = buckets.map(async (bucket) => {
    const response = await ask("/", { headers: { "x-bucket": bucket } });
    await response.text();
    return response.status;
  });
  return Promise.all(asked);
}

interface Hold {
  readonly bucket: string;
  readonly ms: number;
}

/** The time that each bucket had. */
function shares(buckets: readonly string[], holds: readonly Hold[]): number[] {
  return buckets.map((name) => holds.reduce((sum, { bucket, ms }) => sum + (bucket === name ? ms : 0), 0));
}

/** 1: all have the same; 1/n: one has everything. */
function jain(times: readonly number[]): number {
  const total = times.reduce((sum, ms) => sum + ms, 0);
  return total ** 2 / (times.length * times.reduce((sum, ms) => sum + ms ** 2, 0));
}

/** On a machine with other work. */
const SLOW = { timeout: 90_000 };

const copies = (count: number, names: readonly string[]) => names.flatMap((name) => Array<string>(count).fill(name));
const [GREEDY, MODEST] = [
  ["a", "b", "c", "d"],
  ["e", "f", "g", "h"],
];
/** The first four fill the slots until all others wait. The greedy buckets come next and ask for four times as much. */
const DEMAND = [...copies(4, ["first"]), ...copies(40, GREEDY), ...copies(9, MODEST)];

test(
  "200 parallel requests: none fails, never more than 4 at a time, equal shares for greedy and modest buckets",
  SLOW,
  async () => {
    const upstream = await startUpstream(4, 100);
    const worker = await startWorker({ script: PROXY, bindings: { UPSTREAM: upstream.url } });
    const goOn = upstream.pause();
    const first = statuses(worker, DEMAND.slice(0, 4));
    await expect.poll(() => upstream.running, { timeout: 30_000 }).toBe(4);
    const others = statuses(worker, DEMAND.slice(4));
    await expect.poll(async () => (await stateOf(worker, HOST))?.waiting, { timeout: 30_000 }).toBe(196);
    goOn();
    expect((await Promise.all([first, others])).flat().filter((status) => status !== 200)).toEqual([]);
    expect([upstream.most, upstream.started]).toEqual([4, 200]);
    // As long as every bucket waits. In the order of arrival it would be 0.24. On a busy machine single holds are long, and a
    // slot is held for longer than its request takes at the upstream.
    const holds = upstream.holds.slice(4, 68);
    const times = shares([...GREEDY, ...MODEST], holds);
    const longest = Math.max(...holds.map(({ ms }) => ms));
    const isQuiet = longest < 200;
    expect(jain(times)).toBeGreaterThanOrEqual(isQuiet ? 0.95 : 0.6);
    if (isQuiet) expect(Math.max(...times) - Math.min(...times)).toBeLessThanOrEqual(4 * longest);
  },
);

test("the control: the same without slots fails for most requests", async () => {
  const upstream = await startUpstream(4, 20);
  const script = `export class Slots {} export default { fetch: (_, env) => fetch(env.UPSTREAM) };`;
  const worker = await startWorker({ script, bindings: { UPSTREAM: upstream.url } });
  const failed = (await statuses(worker, DEMAND)).filter((status) => status === 500);
  expect(failed.length).toBeGreaterThan(100);
});

test(
  "a caller that resets its connection frees its place within 300 ms, and one that is served its slot",
  SLOW,
  async () => {
    const upstream = await startUpstream(4, 60_000);
    const worker = await startWorker({ script: PROXY, bindings: { UPSTREAM: upstream.url } });
    const open = () => {
      const socket = connect(Number(worker.url.port), worker.url.hostname);
      socket.on("error", () => {}).write("GET / HTTP/1.1\r\nHost: worker\r\n\r\n");
      return socket;
    };
    const holders = Array.from({ length: 4 }, open);
    await expect.poll(async () => (await stateOf(worker, HOST))?.inFlight).toBe(4);
    // The quickest of five counts: on a busy machine any single one may be late.
    const tookMs: number[] = [];
    for (let round = 0; round < 5; round++) {
      const waiters = Array.from({ length: 3 }, open);
      await expect.poll(async () => (await stateOf(worker, HOST))?.pending).toBe(3);
      const resetAt = performance.now();
      for (const socket of waiters) socket.resetAndDestroy();
      await expect.poll(async () => (await stateOf(worker, HOST))?.waiting, { timeout: 20_000, interval: 10 }).toBe(0);
      tookMs.push(performance.now() - resetAt);
    }
    expect(Math.min(...tookMs)).toBeLessThanOrEqual(300);
    for (const socket of holders) socket.resetAndDestroy();
    await expect.poll(async () => (await stateOf(worker, HOST))?.inFlight).toBe(0);
  },
);

test("a Worker that throws frees its slot", async () => {
  const upstream = await startUpstream(4, 1);
  const worker = await startWorker({ script: PROXY, bindings: { UPSTREAM: upstream.url } });
  expect((await worker.ask("/throw")).status).toBe(500);
  await expect.poll(async () => (await stateOf(worker, HOST))?.inFlight, { timeout: 1_000 }).toBe(0);
  const state = (await (await worker.ask("/api/v0/state", { headers: operator })).json()) as object;
  expect(state).toMatchObject({ total: 1, hosts: [{ hostname: HOST }] });
});
