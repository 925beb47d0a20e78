import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type DatabaseError, PostgresStore, PostgrestStore } from "@slotkeeper/postgres";
import { TestPostgrest } from "@slotkeeper/testkit/postgrest";
import { FaultProxy } from "@slotkeeper/testkit/proxy";
import { accountOf, HostUnderTest } from "@slotkeeper/testkit/store-conformance";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let server: TestPostgrest;
let proxy: FaultProxy;
let store: PostgrestStore;

beforeAll(async () => {
  server = await TestPostgrest.open({ schemas: ["public"], poolSize: 4 });
  proxy = await FaultProxy.start(server.url);
  store = await PostgrestStore.open({ baseUrl: proxy.url, authHeader: server.authHeader("service"), timeoutMs: 5_000 });
});
afterAll(async () => {
  await store.close();
  await proxy.refuse();
  await server.close();
});

const hostOn = (on: PostgrestStore) =>
  HostUnderTest.on({ store: on, other: on, pass: async () => {}, close: async () => {} });

/** The error that `open` rejects with. */
const refusal = (options: Partial<Parameters<typeof PostgrestStore.open>[0]>) =>
  PostgrestStore.open({ baseUrl: server.url, ...options }).then(
    () => undefined,
    (error: unknown) => error as DatabaseError,
  );

describe("opening", () => {
  test.each([
    ["a token of another key", { authHeader: "Bearer a.b.c" }, "PGRST301", /jwt-secret/],
    ["no token", {}, "42501", /slotkeeper_service/],
    ["a schema that is not exposed", { schema: "elsewhere" }, "PGRST106", /db-schemas/],
    ["an address where no server listens", { baseUrl: "http://127.0.0.1:18999" }, "ECONNREFUSED", /ECONNREFUSED/],
    ["a path that PostgREST does not have", { baseUrl: "/api" }, "PGRST205", /schema cache/],
  ])(
    "with %s reports what to do, and never the header",
    async (_, {
      baseUrl = "",
      ...options
    }: { baseUrl?: string; authHeader?: string; schema?: string }, state, advice) => {
      const address = baseUrl.startsWith("http") ? baseUrl : server.url + baseUrl;
      const error = await refusal({ ...options, baseUrl: address });
      expect(error).toMatchObject({ name: "DatabaseError", state });
      expect(error?.message).toMatch(advice);
      expect(`${error?.message} ${error?.stack} ${JSON.stringify(error)}`).not.toContain("a.b.c");
    },
  );

  test("on a database that was never migrated reports to migrate and to reload the cache", async () => {
    const client = server.owner;
    await client.query("ALTER FUNCTION slotkeeper_instances RENAME TO elsewhere");
    await server.standIn.reload();
    const error = await refusal({ authHeader: server.authHeader("service") });
    expect(error).toMatchObject({ code: "DATABASE_REFUSED", state: "PGRST202" });
    expect(error?.message).toMatch(/slotkeeper migrate.*NOTIFY pgrst, 'reload schema'/);
    await client.query("ALTER FUNCTION elsewhere RENAME TO slotkeeper_instances");
    await server.standIn.reload();
  });

  test.each([
    ["nowhere", /^Expected `baseUrl` to be the http or https address/],
    ["ftp://h", /got "ftp:"$/],
    ["http://user:secret@h", /without user and password/],
    ["http://h/?a=1", /without "\?" and "#"$/],
  ])("refuses the address %j without quoting it", async (baseUrl, message) => {
    const error = await refusal({ baseUrl });
    expect(error).toBeInstanceOf(TypeError);
    expect(error?.message).toMatch(message);
    expect(error?.message).not.toContain("secret");
  });

  test("refuses a header that no request can contain, without quoting it", async () => {
    const error = await refusal({ authHeader: "Bearer se\ncret" });
    expect(error).toMatchObject({
      name: "TypeError",
      message: "Expected `authHeader` to be text that an HTTP header can carry",
    });
  });
});

describe("a call that fails", () => {
  test.each([
    ["a gateway without a server", { status: 502 }, "HTTP_502", true],
    ["a gateway that asks to wait", { status: 503 }, "HTTP_503", true],
    ["a page that is not found", { status: 404 }, "HTTP_404", false],
    ["a reply that is not JSON", { status: 200 }, "NOT_JSON", false],
    ["no reply", "black-hole", "ETIMEDOUT", true],
  ] as const)("with %s is classified by the table of causes", async (_, fault, state, retryable) => {
    proxy.fault = fault;
    const error = await store.totals().catch((cause: unknown) => cause as DatabaseError);
    proxy.fault = "none";
    expect(error).toMatchObject({ name: "DatabaseError", state, retryable });
  });

  test("reports where a redirect leads, and does not follow it", async () => {
    proxy.fault = { status: 301, headers: { location: "https://new.example/x?key=secret" } };
    await expect(store.totals()).rejects.toThrow(
      "slotkeeper_totals: The reply has status 301 and redirects to https://new.example: set `baseUrl` to that address (HTTP_301)",
    );
    proxy.fault = "none";
  });

  test("P8: is repeated immediately if its reply was lost, and the commit takes effect once", async () => {
    const host = await hostOn(store);
    await host.accept();
    const commit = await host.commitOf({ puts: [accountOf("b", host.head.now, 1)] });
    const before = proxy.calls("slotkeeper_commit").length;
    proxy.fault = (call) => (proxy.calls("slotkeeper_commit").indexOf(call) === before ? "lost-answer" : "none");
    expect(await store.commit(commit)).toMatchObject({ isOk: true });
    proxy.fault = "none";
    expect(proxy.calls("slotkeeper_commit")).toHaveLength(before + 2);
    expect(await host.names()).toEqual(["account b"]);
  });

  test("fails if the connection is cut twice, and then succeeds with the same tag", async () => {
    const host = await hostOn(store);
    const commit = await host.commitOf({});
    proxy.fault = "reset";
    await expect(store.commit(commit)).rejects.toMatchObject({ code: "DATABASE_UNAVAILABLE", retryable: true });
    proxy.fault = "none";
    expect(await store.commit(commit)).toMatchObject({ isOk: true });
  });

  test("is aborted when the store is closed", async () => {
    const own = await PostgrestStore.open({ baseUrl: proxy.url, authHeader: server.authHeader("service") });
    proxy.fault = "black-hole";
    const call = own.totals();
    await expect.poll(() => proxy.seen.at(-1)?.path).toBe("/rpc/slotkeeper_totals");
    await own.close();
    await expect(call).rejects.toMatchObject({ name: "DatabaseError", state: "CLOSED" });
    proxy.fault = "none";
  });

  test("P7: a host that another program keeps locked does not stop other hosts", async () => {
    const [stuck, free] = [await hostOn(store), await hostOn(store)];
    await stuck.accept();
    await server.owner.query("ALTER FUNCTION slotkeeper_commit SET lock_timeout = '50ms'");
    await server.owner.query("BEGIN");
    await server.owner.query("SELECT FROM slotkeeper_host WHERE host = $1 FOR UPDATE", [stuck.host]);
    const commits = await Promise.all(Array.from({ length: 12 }, () => stuck.commitOf({ now: stuck.head.now })));
    const waiting = Promise.allSettled(commits.map((commit) => store.commit(commit)));
    for (let at = 0; at < 5; at++) await free.accept();
    const [first] = await waiting;
    expect(first).toMatchObject({ status: "rejected", reason: { code: "DATABASE_UNAVAILABLE", state: "55P03" } });
    await server.owner.query("ROLLBACK");
    await stuck.accept();
  });
});

test("consecutive calls use one connection, also with a path in the address", async () => {
  let connections = 0;
  const paths: (string | undefined)[] = [];
  const counted = createServer((request, reply) => {
    paths.push(request.url);
    request.resume().on("end", () => reply.end("[]"));
  }).on("connection", () => connections++);
  await new Promise<void>((resolve) => counted.listen(0, "127.0.0.1", resolve));
  const { port } = counted.address() as AddressInfo;
  const own = await PostgrestStore.open({ baseUrl: `http://127.0.0.1:${port}/api/` });
  for (let at = 0; at < 10; at++) await own.instances();
  // The platform may open a second connection before it knows that the first is kept alive.
  expect([connections <= 2, new Set(paths)]).toEqual([true, new Set(["/api/rpc/slotkeeper_instances"])]);
  await own.close();
  counted.closeAllConnections();
  counted.close();
});

test("a store through PostgREST and one with a connection share hosts, keys and conflicts", async () => {
  const direct = await PostgresStore.open({ dsn: server.database.dsn });
  const host = await HostUnderTest.on({ store, other: direct, pass: async () => {}, close: async () => {} });
  const base = await host.accept();
  await host.accept({ store: direct });
  expect(await host.send({ base })).toMatchObject({ isOk: false, reason: "conflict", tag: host.tag });
  expect(await store.tokenKeys("mine")).toEqual(await direct.tokenKeys("yours"));
  expect([(await store.health()).isReady, (await direct.health()).isReady]).toEqual([true, true]);
  await direct.close();
});

test("the role for programs cannot call the store's functions, and the service's cannot read tables", async () => {
  const error = await refusal({ authHeader: server.authHeader("postgrest") });
  expect(error).toMatchObject({ code: "DATABASE_REFUSED", state: "42501" });
  const given = {
    p_hostname_hash: "",
    p_hostname: "r.example",
    p_ip_bucket: "b",
    p_now_ms: 0,
    p_max_slot_per_host: 5,
    p_max_slot_per_ip: 1,
  };
  const call = (role: "postgrest" | "service") =>
    fetch(`${server.url}/rpc/download_try_acquire_slot`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: server.authHeader(role) },
      body: JSON.stringify(given),
    });
  expect(await (await call("postgrest")).json()).toMatchObject([{ status: "ACQUIRED" }]);
  expect((await call("service")).status).toBe(403);
});
