import { signJwt, TestPostgrest } from "@slotkeeper/testkit/postgrest";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** The rules of the stand-in, through a plain HTTP client. Its sources cite the sentences that they follow. */

let server: TestPostgrest;

beforeAll(async () => {
  server = await TestPostgrest.open({ schemas: ["public", "other"] });
  await server.owner.query(`
    CREATE SCHEMA other;
    CREATE TABLE counted (n integer PRIMARY KEY);
    CREATE FUNCTION add_them(a integer, b integer DEFAULT 10) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT a + b';
    CREATE FUNCTION other.add_them(a integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT -a';
    CREATE FUNCTION join_them(parts text[], about jsonb, at double precision) RETURNS json LANGUAGE sql
      AS 'SELECT json_build_object(''parts'', parts, ''kind'', about ->> ''kind'', ''at'', at, ''none'', cardinality(parts))';
    CREATE FUNCTION put_one(n integer) RETURNS void LANGUAGE sql AS 'INSERT INTO counted VALUES (n)';
    CREATE FUNCTION put_one_quietly(n integer) RETURNS void LANGUAGE plpgsql STABLE AS 'BEGIN PERFORM put_one(n); END';
    CREATE FUNCTION list_them() RETURNS SETOF counted LANGUAGE sql STABLE AS 'SELECT * FROM counted ORDER BY n';
    CREATE FUNCTION the_numbers() RETURNS SETOF integer LANGUAGE sql STABLE AS 'SELECT n FROM counted ORDER BY n';
    CREATE FUNCTION about_me() RETURNS json LANGUAGE sql STABLE AS 'SELECT json_build_object(
      ''role'', current_role, ''claims'', current_setting(''request.jwt.claims'')::json, ''method'', current_setting(''request.method''),
      ''path'', current_setting(''request.path''), ''schema'', current_schema())';
    CREATE FUNCTION fail_with(state text) RETURNS void LANGUAGE plpgsql AS
      'BEGIN RAISE EXCEPTION ''no: %'', state USING ERRCODE = state, DETAIL = ''why'', HINT = ''do this''; END';
    CREATE FUNCTION put_and_fail(n integer) RETURNS void LANGUAGE plpgsql AS
      'BEGIN INSERT INTO counted VALUES (n); RAISE EXCEPTION ''undone''; END';
    GRANT USAGE ON SCHEMA other TO PUBLIC;
    GRANT ALL ON counted TO PUBLIC;
    REVOKE ALL ON FUNCTION put_one FROM PUBLIC;
    GRANT EXECUTE ON FUNCTION put_one TO ${server.roleName("service")};`);
  await server.standIn.reload();
});
afterAll(() => server.close());

async function request(path: string, init: RequestInit = {}) {
  const reply = await fetch(`${server.url}${path}`, init);
  const text = await reply.text();
  const type = reply.headers.get("content-type");
  return { status: reply.status, type, body: text === "" ? undefined : (JSON.parse(text) as unknown) };
}

const post = (name: string, given: unknown, headers: Record<string, string> = {}) =>
  request(`/rpc/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(given),
  });

const as = (role: "service" | "postgrest") => ({ Authorization: server.authHeader(role) });

describe("arguments", () => {
  it("are taken by name, and an argument with a default may be left out", async () => {
    expect(await post("add_them", { a: 1, b: 2 })).toMatchObject({ status: 200, body: 3 });
    expect(await post("add_them", { a: 1 })).toMatchObject({ status: 200, body: 11 });
  });

  it("are arrays, objects, numbers and nulls of JSON", async () => {
    const given = { parts: ["a", null, 'q"{,}'], about: { kind: "k" }, at: 1763336745123.25 };
    const { body } = await post("join_them", given);
    expect(body).toEqual({ parts: given.parts, kind: "k", at: given.at, none: 3 });
    expect((await post("join_them", { parts: null, about: null, at: null })).body).toMatchObject({
      parts: null,
      at: null,
    });
  });

  it.each([
    ["an unknown function", "nothing_like_it", {}],
    ["an unknown argument", "add_them", { a: 1, c: 2 }],
    ["a missing argument", "add_them", { b: 1 }],
  ])("%s is 404 with PGRST202", async (_, name, given) => {
    expect(await post(name, given)).toMatchObject({ status: 404, body: { code: "PGRST202", hint: null } });
  });

  it("are read from the query of a GET", async () => {
    expect(await request("/rpc/add_them?a=1&b=2")).toMatchObject({ status: 200, body: 3 });
  });

  it.each(["", "{", "[1]", "7"])("a body %j that is no JSON object is 400 with PGRST102", async (body) => {
    const init = { method: "POST", headers: { "Content-Type": "application/json" }, body };
    expect(await request("/rpc/add_them", init)).toMatchObject({ status: 400, body: { code: "PGRST102" } });
  });

  it("with a different content type are 415, other methods 405, other paths 404", async () => {
    const text = { method: "POST", headers: { "Content-Type": "text/csv" }, body: "a" };
    expect(await request("/rpc/add_them", text)).toMatchObject({ status: 415, body: { code: "PGRST107" } });
    expect(await request("/rpc/add_them", { method: "PUT" })).toMatchObject({
      status: 405,
      body: { code: "PGRST101" },
    });
    expect(await request("/counted")).toMatchObject({ status: 404, body: { code: "PGRST205" } });
  });
});

describe("results", () => {
  it("are a value, an array of rows, an array of values, or nothing", async () => {
    expect(await post("put_one", { n: 1 }, as("service"))).toEqual({ status: 204, type: null, body: undefined });
    expect(await post("put_one", { n: 2 }, as("service"))).toMatchObject({ status: 204 });
    expect(await post("list_them", {})).toMatchObject({ status: 200, body: [{ n: 1 }, { n: 2 }] });
    expect(await post("the_numbers", {})).toMatchObject({ body: [1, 2], type: "application/json; charset=utf-8" });
  });

  it("are one object on request, and 406 if there is not exactly one", async () => {
    const Accept = "application/vnd.pgrst.object+json";
    expect(await post("list_them", {}, { Accept })).toMatchObject({ status: 406, body: { code: "PGRST116" } });
    await server.owner.query("DELETE FROM counted WHERE n = 2");
    expect(await post("list_them", {}, { Accept })).toMatchObject({ status: 200, body: { n: 1 } });
  });
});

describe("one transaction per request", () => {
  it("is rolled back by an error", async () => {
    expect((await post("put_and_fail", { n: 7 })).status).toBe(400);
    expect((await post("the_numbers", {})).body).not.toContain(7);
  });

  it("is read-only for GET, and for functions that are not volatile", async () => {
    const refused = { status: 405, body: { code: "25006" } };
    expect(await post("put_one_quietly", { n: 8 }, as("service"))).toMatchObject(refused);
    expect(await request("/rpc/put_one?n=8", { headers: as("service") })).toMatchObject(refused);
  });
});

describe("errors of the database", () => {
  it("have its code, message, details and hint", async () => {
    const { body } = await post("fail_with", { state: "SK002" });
    expect(body).toEqual({ code: "SK002", message: "no: SK002", details: "why", hint: "do this" });
  });

  it.each([
    ["SK001", 400],
    ["P0001", 400],
    ["23505", 409],
    ["23503", 409],
    ["42883", 404],
    ["40001", 500],
    ["55P03", 500],
    ["57014", 500],
    ["53300", 503],
    ["08006", 503],
    ["28000", 403],
    ["PT418", 418],
  ])("%s is status %i", async (state, status) => {
    expect(await post("fail_with", { state })).toMatchObject({ status, body: { code: state } });
  });

  it("a right that is missing is 401 for the anonymous role and 403 for a named one", async () => {
    expect(await post("put_one", { n: 9 })).toMatchObject({ status: 401, body: { code: "42501" } });
    expect(await post("put_one", { n: 9 }, as("postgrest"))).toMatchObject({ status: 403, body: { code: "42501" } });
  });
});

describe("callers", () => {
  it("have the role and the claims of their token for one request", async () => {
    const Authorization = await server.headerWith("service", { email: "a@example.com" });
    const role = server.roleName("service");
    expect((await post("about_me", {}, { Authorization: Authorization.replace("Bearer", "bearer") })).body).toEqual({
      role,
      claims: { role, email: "a@example.com" },
      method: "POST",
      path: "/rpc/about_me",
      schema: "public",
    });
    expect((await request("/rpc/about_me")).body).toMatchObject({ role: server.roleName("anon"), method: "GET" });
  });

  const seconds = Math.floor(Date.now() / 1000);
  it.each([
    [
      "a wrong signature",
      "PGRST301",
      async () => `Bearer ${await signJwt({ role: "service" }, "another secret, of some length")}`,
    ],
    ["no token", "PGRST301", () => "Bearer nonsense"],
    ["no algorithm", "PGRST301", () => `Bearer ${Buffer.from('{"alg":"none"}').toString("base64url")}.e30.`],
    ["an expired token", "PGRST303", () => server.headerWith("service", { exp: seconds - 40 })],
    ["a token of the future", "PGRST303", () => server.headerWith("service", { nbf: seconds + 60 })],
    ["a token that was issued in the future", "PGRST303", () => server.headerWith("service", { iat: seconds + 60 })],
  ])("with %s are refused with 401", async (_, code, header) => {
    expect(await post("about_me", {}, { Authorization: await header() })).toMatchObject({
      status: 401,
      body: { code },
    });
  });

  it("may have clocks that are wrong by up to thirty seconds", async () => {
    const Authorization = await server.headerWith("service", { exp: seconds - 5 });
    expect((await post("about_me", {}, { Authorization })).status).toBe(200);
  });

  it("cannot use a role that the authenticator is not a member of", async () => {
    const Authorization = await server.headerWith("service", { role: "pg_read_all_data" });
    expect(await post("about_me", {}, { Authorization })).toMatchObject({ status: 403, body: { code: "42501" } });
  });

  it("without a token are refused if there is no anonymous role", async () => {
    await using closed = await TestPostgrest.open({ hasAnonRole: false });
    const reply = await fetch(`${closed.url}/rpc/slotkeeper_ready`, { method: "POST", body: "{}" });
    expect([reply.status, await reply.json()]).toMatchObject([401, { code: "PGRST302" }]);
  });
});

describe("schemas", () => {
  it("are selected with Content-Profile, and the first is the default", async () => {
    expect((await post("add_them", { a: 5 }, { "Content-Profile": "other" })).body).toBe(-5);
    expect((await request("/rpc/add_them?a=5", { headers: { "Accept-Profile": "other" } })).body).toBe(-5);
    expect((await post("add_them", { a: 5 })).body).toBe(15);
  });

  it("that are not exposed are 406 with PGRST106", async () => {
    const body = { code: "PGRST106", message: "The schema must be one of the following: public, other" };
    expect(await post("add_them", { a: 5 }, { "Content-Profile": "pg_catalog" })).toMatchObject({ status: 406, body });
  });

  it("stay as they were when the cache was loaded, until NOTIFY reloads it", async () => {
    await server.owner.query("CREATE FUNCTION made_later() RETURNS integer LANGUAGE sql AS 'SELECT 1'");
    expect((await post("made_later", {})).status).toBe(404);
    await server.owner.query("NOTIFY pgrst, 'reload schema'");
    await expect.poll(async () => (await post("made_later", {})).body).toBe(1);
  });
});
