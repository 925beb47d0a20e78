// The HTTP API of a Worker, for callers and operators outside it; in real workerd.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { ServiceState } from "@slotkeeper/protocol";
import { cleanEnvironment } from "@slotkeeper/testkit/fleet";
import { expect, test } from "vitest";
import { call } from "./killed-workerd.ts";
import { KEY, operator, SERVING, slotsClass, startWorker, stateOf, type TestWorker, TOKEN } from "./worker.ts";

const HOST = "upstream.example.com";
const SCRIPT = `${slotsClass({ hosts: { [HOST]: { maxSlotPerHost: 2, maxSlotPerIp: -1 } } })} ${SERVING}`;

async function list({ ask }: TestWorker): Promise<ServiceState> {
  return (await (await ask("/api/v0/state", { headers: operator })).json()) as ServiceState;
}

test("callers need the shared key, operators the bearer; bad calls are answered as by the service", async () => {
  const { ask } = await startWorker({ script: SCRIPT });
  const post = (name: string, body: string, headers: object = {}) =>
    ask(`/api/v0/fairqueue/${name}`, { method: "POST", body, headers: { ...headers } });
  const asked = [
    await post("acquire", "{}"),
    await post("acquire", "{}", { "x-fq-auth": KEY }),
    await post("acquire", "{", { "x-fq-auth": KEY }),
    await post("acquire", JSON.stringify({ hostname: "x".repeat(70_000) }), { "x-fq-auth": KEY }),
    await post("renew", JSON.stringify({ slotToken: "none" }), { "x-fq-auth": KEY }),
    await post("acquire", JSON.stringify({ queryToken: "fq1.aaaaaaaa.e30.x" }), { "x-fq-auth": KEY }),
    await ask("/api/v0/state"),
    await ask("/api/v0/state", { headers: { authorization: "Bearer wrong" } }),
    await ask("/report", { method: "POST", body: "{}" }),
    await ask("/api/v0/fairqueue/acquire", { headers: { "x-fq-auth": KEY } }),
  ];
  const problems = await Promise.all(
    asked.map(async (response) => (await response.json()) as { code?: string; reason?: string }),
  );
  expect(problems.map(({ code, reason }) => code ?? reason)).toEqual([
    "UNAUTHORIZED",
    "BAD_FIELDS",
    "BAD_JSON",
    "BODY_TOO_LARGE",
    "SLOT_LOST",
    "unknown-token",
    "NOT_FOUND",
    "NOT_FOUND",
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
  ]);
});

test("with one key only, the routes of the other are not served", async () => {
  const script = `
    ${slotsClass({})}
    export default {
      fetch: (request, env) => serve(request, env.SLOTS, request.headers.get("x-only") === "auth" ? { auth: "${KEY}" } : { internalToken: "${TOKEN}" }),
    };
  `;
  const { ask } = await startWorker({ script });
  const status = async (path: string, only: string, method: string) => {
    const headers = { ...operator, "x-fq-auth": KEY, "x-only": only };
    const body = method === "POST" ? { body: JSON.stringify({ hostname: HOST, waitMs: 1_000 }) } : {};
    return (await ask(`/api/v0/${path}`, { method, headers, ...body })).status;
  };
  const calls = [status("fairqueue/acquire", "auth", "POST"), status("fairqueue/acquire", "internal", "POST")];
  const states = [status("state", "auth", "GET"), status("state", "internal", "GET")];
  expect(await Promise.all([...calls, ...states])).toEqual([200, 404, 404, 200]);
});

test("without a key nothing is served, and the error says why", async () => {
  const script = `
    ${slotsClass({})}
    export default {
      async fetch(request, env) {
        const refused = [];
        for (const options of [{}, { auth: "" }, { auth: [] }, { internalToken: "" }, { auth: env.NOT_SET }])
          refused.push(await serve(request, env.SLOTS, options).then(() => "served", (error) => error.message));
        refused.push(await serve(request, env.NOT_BOUND, { auth: "key" }).then(() => "served", (error) => error.message));
        return Response.json(refused);
      },
    };
  `;
  const { ask } = await startWorker({ script });
  const neither = "Expected `auth` or `internalToken`, got neither: anyone on the internet could take slots";
  expect(await (await ask("/")).json()).toEqual([
    neither,
    "Expected `auth` to be a non-empty text",
    "Expected `auth` to be a non-empty text",
    "Expected `internalToken` to be a non-empty text",
    neither,
    "Expected a binding of a Durable Object class, got undefined. Is it in wrangler.jsonc?",
  ]);
});

test("operators read one host, change its limits, open its breaker and revoke a slot", async () => {
  const worker = await startWorker({ script: SCRIPT });
  const granted = await call(worker, "acquire", { hostname: HOST, bucket: "a", waitMs: 1_000 });
  const before = await stateOf(worker, HOST);
  expect(before).toMatchObject({ hostname: HOST, limit: 2, inFlight: 1, slots: [{ bucket: "a" }] });
  const send = async (method: string, path: string, body?: object) => {
    const json = body === undefined ? {} : { body: JSON.stringify(body) };
    return (await worker.ask(`/api/v0/${path}`, { method, headers: operator, ...json })).status;
  };
  expect(await send("POST", `hosts/${HOST}`, { maxSlotPerHost: 7 })).toBe(204);
  expect(await stateOf(worker, HOST)).toMatchObject({
    limit: 7,
    limits: { maxSlotPerHost: { value: 7, origin: "live" } },
  });
  expect(await send("POST", `hosts/${HOST}/breaker`, { state: "open" })).toBe(204);
  expect(await stateOf(worker, HOST)).toMatchObject({ breaker: "open" });
  expect(await send("DELETE", `slots/${before?.slots[0]?.slot}`)).toBe(204);
  expect(await call(worker, "renew", { slotToken: granted["slotToken"] })).toMatchObject({ code: "SLOT_LOST" });
  expect(await send("POST", `hosts/upstream.exmple.com`, { maxSlotPerHost: 7 })).toBe(404);
  const history = await worker.ask(`/api/v0/history?host=${HOST}`, { headers: operator });
  expect(await history.json()).toMatchObject({ isTracked: true });
});

test("the directory lists the hosts, and leases that have ended are not counted", async () => {
  const short = { maxSlotPerHost: 3, zombieTimeoutSeconds: 2, maxHoldSeconds: 2 };
  const worker = await startWorker({ script: `${slotsClass(short)} ${SERVING}` });
  for (const hostname of ["a.example", "b.example"])
    await call(worker, "acquire", { hostname, bucket: "a", waitMs: 1_000 });
  await expect.poll(async () => (await list(worker)).total).toBe(2);
  const { hosts } = await list(worker);
  expect(hosts.map(({ hostname, inFlight, limit }) => `${hostname} ${inFlight}/${limit}`).toSorted()).toEqual([
    "a.example 1/3",
    "b.example 1/3",
  ]);
  expect(JSON.stringify(hosts)).not.toContain("slot_");
  await expect
    .poll(async () => (await list(worker)).hosts.map(({ inFlight }) => inFlight), { timeout: 5_000 })
    .toEqual([0, 0]);
  const instances = await worker.ask("/api/v0/instances", { headers: operator });
  expect(await instances.json()).toMatchObject({ instances: [{ isThis: true }] });
});

test("listeners get events of the directory", async () => {
  const worker = await startWorker({ script: SCRIPT });
  const response = await worker.ask("/api/v0/events", { headers: operator });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await call(worker, "acquire", { hostname: HOST, bucket: "a", waitMs: 1_000 });
  let text = "";
  while (!text.includes(HOST)) text += new TextDecoder().decode((await reader.read()).value);
  expect(text).toContain("event: hello");
  await reader.cancel();
});

test("`slotkeeper status` shows the hosts of a Worker", async () => {
  const worker = await startWorker({ script: SCRIPT });
  await call(worker, "acquire", { hostname: HOST, bucket: "a", waitMs: 1_000 });
  await expect.poll(async () => (await list(worker)).total).toBe(1);
  const bin = fileURLToPath(new URL("../../cli/bin/slotkeeper.mjs", import.meta.url));
  const env = { ...cleanEnvironment(), SLOTKEEPER_INTERNAL_TOKEN: TOKEN };
  const args = [bin, "status", "--url", worker.url.origin];
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  expect(stdout).toMatch(/^HOST +SLOTS +WAITING +OLDEST +BREAKER\nupstream\.example\.com +1\/2 +0 +- +closed\n$/);
});

test("an answer to acquire has the quotas of the host, and `Prefer: wait` reaches its object", async () => {
  const script = `${slotsClass({ budgets: { tokens: { limit: 100, perSeconds: 1000 } } })} ${SERVING}`;
  const { ask } = await startWorker({ script });
  const response = await ask("/api/v0/fairqueue/acquire", {
    method: "POST",
    headers: { "x-fq-auth": KEY, prefer: "wait=2" },
    body: JSON.stringify({ hostname: HOST, cost: { tokens: 30 } }),
  });
  expect(await response.json()).toMatchObject({ result: "granted", charged: { tokens: 30 } });
  const shown = (name: string) => response.headers.get(name);
  expect([shown("ratelimit-policy"), shown("ratelimit"), shown("preference-applied")]).toEqual([
    '"slots";q=5;qu="concurrent-requests", "tokens";q=100;w=1000',
    '"slots";r=4, "tokens";r=70;t=300',
    "wait=2",
  ]);
});

test("a host with classes shows them, and live slots stay above their floors", async () => {
  const classes = { chat: { weight: 4, floor: 2 }, batch: { ceiling: 2 } };
  const worker = await startWorker({ script: `${slotsClass({ maxSlotPerHost: 4, classes })} ${SERVING}` });
  await call(worker, "acquire", { hostname: HOST, class: "chat", waitMs: 1_000 });
  expect(await stateOf(worker, HOST)).toMatchObject({
    classes: [{ name: "batch" }, { name: "chat", floor: 2, inFlight: 1 }, { name: "default" }],
    slots: [{ class: "chat" }],
  });
  const set = (maxSlotPerHost: number) =>
    worker.ask(`/api/v0/hosts/${HOST}`, {
      method: "POST",
      headers: operator,
      body: JSON.stringify({ maxSlotPerHost }),
    });
  const refused = await set(2);
  expect([refused.status, await refused.json()]).toMatchObject([400, { errors: [{ field: "maxSlotPerHost" }] }]);
  expect((await set(3)).status).toBe(204);
});
