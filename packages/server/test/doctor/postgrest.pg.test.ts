import { TestPostgrest } from "@slotkeeper/testkit/postgrest";
import { afterAll, beforeAll, expect, it } from "vitest";
import { diagnosisOf, finding, reported } from "./findings.ts";

let server: TestPostgrest;
beforeAll(async () => {
  server = await TestPostgrest.open();
});
afterAll(() => server.close());

const examine = (postgrest: object = {}) =>
  diagnosisOf({
    backend: { postgrest: { baseUrl: server.url, authHeader: server.authHeader("service"), ...postgrest } },
  });

it("a usable database behind PostgREST gives nothing to report", async () => {
  const diagnosis = await examine();
  expect(diagnosis).toMatchObject({ store: "postgrest", severity: "ok", skipped: [] });
  expect(diagnosis.findings.map(({ check }) => check).slice(-3)).toEqual(["database", "clock", "instances"]);
  expect(JSON.stringify(diagnosis)).not.toContain(server.authHeader("service"));
});

it("an address without PostgREST, and a role without the right, are problems", async () => {
  const nowhere = await examine({ baseUrl: "http://127.0.0.1:1" });
  expect(reported(nowhere)).toEqual(["problem STORE_UNREACHABLE"]);
  expect(finding(nowhere, "STORE_UNREACHABLE").fix).toContain("backend.postgrest.baseUrl");
  expect(nowhere.skipped).toEqual(["clock", "instances"]);
  expect(reported(await examine({ authHeader: server.authHeader("anon") }))).toEqual(["problem STORE_FORBIDDEN"]);
});
