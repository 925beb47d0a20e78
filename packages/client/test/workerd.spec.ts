// The client and the example Worker in real workerd.
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { bundle } from "@slotkeeper/testkit/bundle";
import { startUpstream } from "@slotkeeper/testkit/upstream";
import { Miniflare } from "miniflare";
import { afterEach, expect, test } from "vitest";
import { startRedirects } from "./broken-server.ts";
import { startWorld } from "./fixture.ts";
import { expected } from "./smoke.ts";

const EXAMPLE = fileURLToPath(new URL("../../../examples/cloudflare-worker/worker.ts", import.meta.url));
const workers = new Set<Miniflare>();

afterEach(async () => {
  for (const worker of workers) await worker.dispose();
  workers.clear();
});

async function startWorker(script: string, bindings: Record<string, string> = {}): Promise<URL> {
  const worker = new Miniflare({
    modules: true,
    script,
    bindings,
    compatibilityDate: "2025-06-01",
    compatibilityFlags: ["enable_request_signal"],
  });
  workers.add(worker);
  return worker.ready;
}

const fourSlots = { fairQueue: { maxSlotPerHost: 4, maxSlotPerIp: -1 } };

async function statuses(url: URL, requests: number): Promise<number[]> {
  const asked = Array.from({ length: requests }, async () => {
    const response = await fetch(url);
    await response.text();
    return response.status;
  });
  return Promise.all(asked);
}

test("the client works in workerd", async () => {
  const world = await startWorld();
  const script = await bundle(
    `
    import { smoke } from "./smoke.ts";
    export default { fetch: async (_, env) => Response.json(await smoke(env.URL, "workerd")) };
  `,
    import.meta.dirname,
  );
  const url = await startWorker(script, { URL: world.direct });
  // JSON has no undefined.
  expect(await (await fetch(url)).json()).toEqual({ ...expected, busy: [null, "ACQUIRE_TIMEOUT"] });
});

test("redirects are not followed in workerd", async () => {
  const redirects = await startRedirects();
  const script = await bundle(
    `
    import { redirected } from "./smoke.ts";
    export default { fetch: async (_, env) => new Response(await redirected(env.URL)) };
  `,
    import.meta.dirname,
  );
  const url = await startWorker(script, { URL: redirects.url });
  expect(await (await fetch(url)).text()).toBe("UNAVAILABLE");
  expect([redirects.seen.redirected > 0, redirects.seen.followed]).toEqual([true, 0]);
});

test("the example: 200 parallel requests to an upstream that allows 4 at a time, without a failure", async () => {
  const upstream = await startUpstream(4, 20);
  const world = await startWorld(fourSlots);
  const script = await bundle(`export { default } from ${JSON.stringify(EXAMPLE)};`, import.meta.dirname);
  const url = await startWorker(script, { SLOTKEEPER_URL: world.direct, UPSTREAM: upstream.url });
  const seen = await statuses(url, 200);
  expect(seen.filter((status) => status !== 200)).toEqual([]);
  expect([upstream.most, upstream.started]).toEqual([4, 200]);
  await world.until({ slots: 0, sessions: 0 });
});

test("the control: the same without slots fails many times", async () => {
  const upstream = await startUpstream(4, 20);
  const url = await startWorker(`export default { fetch: (_, env) => fetch(env.UPSTREAM) };`, {
    UPSTREAM: upstream.url,
  });
  const seen = await statuses(url, 200);
  expect(seen.filter((status) => status === 500).length).toBeGreaterThan(20);
});

test("the example: a client that disconnects leaves the queue, and one that is served releases its slot", async () => {
  const upstream = await startUpstream(4, 60_000);
  const world = await startWorld(fourSlots);
  const script = await bundle(`export { default } from ${JSON.stringify(EXAMPLE)};`, import.meta.dirname);
  const url = await startWorker(script, { SLOTKEEPER_URL: world.direct, UPSTREAM: upstream.url });
  const sockets = Array.from({ length: 6 }, () => connect(Number(url.port), url.hostname));
  for (const socket of sockets) socket.on("error", () => {}).write("GET / HTTP/1.1\r\nHost: worker\r\n\r\n");
  await world.until({ slots: 4, sessions: 2 });
  // This build of workerd notices a connection that is reset, not one that is closed.
  for (const socket of sockets) socket.resetAndDestroy();
  await world.until({ slots: 0, sessions: 0 });
  await expect.poll(() => upstream.running).toBe(0);
});

test("the example: path and query reach the upstream, and no path leads to another host", async () => {
  const upstream = await startUpstream(4, 1);
  const world = await startWorld(fourSlots);
  const script = await bundle(`export { default } from ${JSON.stringify(EXAMPLE)};`, import.meta.dirname);
  const url = await startWorker(script, { SLOTKEEPER_URL: world.direct, UPSTREAM: upstream.url });
  const targets = ["/files/a%20b?page=2&q=x", "//elsewhere.example/a"];
  for (const target of targets) await (await fetch(url.origin + target)).text();
  expect(upstream.targets).toEqual(targets);
});

test("the example: a paused upstream gives a 503 with the time of the next attempt", async () => {
  const upstream = await startUpstream(0, 1);
  const world = await startWorld({ fairQueue: { ...fourSlots.fairQueue, breaker: { consecutiveErrors: 1 } } });
  const script = await bundle(`export { default } from ${JSON.stringify(EXAMPLE)};`, import.meta.dirname);
  const url = await startWorker(script, { SLOTKEEPER_URL: world.direct, UPSTREAM: upstream.url });
  await expect.poll(async () => (await fetch(url)).status).toBe(503);
  const response = await fetch(url);
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(await response.json()).toMatchObject({ code: "THROTTLED" });
});
