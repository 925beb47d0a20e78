import { setTimeout as pause } from "node:timers/promises";
import { TestPostgrest } from "@slotkeeper/testkit/postgrest";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describeFleet, instancesOn, newHost } from "./fleet-cases.ts";
import { type Fixture, startFixture } from "./service-fixture.ts";

/** The service on PostgreSQL through PostgREST, over HTTP. There is no push: instances learn of each other by their beat. */

let server: TestPostgrest;

beforeAll(async () => {
  server = await TestPostgrest.open();
});
afterAll(() => server.close());

const backendOf = (more: object = {}) => {
  return { mode: "postgrest", postgrest: { baseUrl: server.url, authHeader: server.authHeader("service"), ...more } };
};

const instance = instancesOn(backendOf);
describeFleet(instance);

test("limits are strict and every bucket is served while two instances work on one host", async () => {
  const limits = { maxSlotPerHost: 2, maxSlotPerIp: 1 };
  const fleet = await Promise.all([instance(limits), instance(limits)]);
  const host = newHost();
  let live = 0;
  let most = 0;
  const grants = new Map<string, number>();
  const fences: number[] = [];
  // Each bucket is at one instance only, so its share depends on offers between instances. If a bucket starves, this
  // never ends. The benchmark measures how even the shares are.
  const isOver = () => grants.size === 6 && Math.min(...grants.values()) >= 5;
  const client = async (at: number) => {
    const ipBucket = `b${at % 6}`;
    const fixture = fleet[at % 2] as Fixture;
    while (!isOver()) {
      const { body } = await fixture.acquire({ ...host, ipBucket, waitMs: 5_000 });
      if (body.result !== "granted") continue;
      most = Math.max(most, ++live);
      fences.push(body.fence);
      grants.set(ipBucket, (grants.get(ipBucket) ?? 0) + 1);
      await pause(20);
      live--;
      await fixture.release(body.slotToken, host);
    }
  };
  await Promise.all(Array.from({ length: 12 }, (_, at) => client(at)));
  expect(most).toBeLessThanOrEqual(2);
  expect(new Set(fences).size).toBe(fences.length);
});

test("while PostgREST is unavailable callers stay pending because of the store, and continue when it is back", async () => {
  const fixture = await instance({ maxSlotPerHost: 1 });
  const host = newHost();
  const slot = await fixture.take({ ...host, ipBucket: "a" });
  expect((await fixture.request("GET", "/readyz")).status).toBe(200);
  await server.standIn.refuse();
  const { body } = await fixture.acquire({ ...host, ipBucket: "b", waitMs: 400 });
  expect(body).toMatchObject({ result: "pending", blockedBy: "store" });
  expect((await fixture.request("GET", "/readyz")).status).toBe(503);
  await fixture.release(slot.slotToken);
  await server.standIn.accept();
  expect((await fixture.poll(body.queryToken)).body.result).toBe("granted");
  await expect.poll(async () => (await fixture.request("GET", "/readyz")).status).toBe(200);
  const logged = fixture.logged.join("\n");
  expect(logged).toMatch(/ECONNREFUSED|ECONNRESET|UND_ERR_SOCKET/);
  expect(logged).not.toContain(server.authHeader("service").slice("Bearer ".length));
});

test("a failed start reports why and what to do, without the header", async () => {
  const start = (postgrest: object) => startFixture({ config: { backend: backendOf(postgrest) } });
  await expect(start({ authHeader: "Bearer x.y.z" })).rejects.toThrow(
    /^Cannot use the database through PostgREST at http:\/\/127\.0\.0\.1:\d+: .*jwt-secret/,
  );
  await expect(start({ authHeader: server.authHeader("postgrest") })).rejects.toThrow(/slotkeeper_service/);
  await expect(start({ schema: "elsewhere" })).rejects.toThrow(/db-schemas/);
  await expect(start({ baseUrl: "http://u:secret@127.0.0.1" })).rejects.toThrow(
    /`backend\.postgrest\.baseUrl` cannot be used\. Expected .* without user and password/,
  );
});
