import { describe, expect, it } from "vitest";
import { connection, everythingSaid, rawAnswer } from "./raw-connection.ts";
import { type Fixture, startFixture } from "./service-fixture.ts";

const LIVEZ = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";

async function metric(fixture: Fixture, series: string): Promise<number> {
  const { text } = await fixture.request("GET", "/metrics");
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${series} `));
  return Number(line?.slice(series.length + 1) ?? Number.NaN);
}

const warnings = (fixture: Fixture, message: string) =>
  fixture.logged.filter((line) => line.includes(`"msg":"${message}"`));

describe("connections", () => {
  it("above `limits.connections` are answered 503 with Retry-After and closed; earlier ones continue", async () => {
    const fixture = await startFixture({ config: { limits: { connections: 2 } } });
    const kept = [await connection(fixture), await connection(fixture)];
    for (const _ of [1, 2, 3]) {
      const answer = await rawAnswer(fixture, LIVEZ);
      expect(answer).toMatch(/^HTTP\/1\.1 503 /);
      expect(answer).toMatch(/\r\nRetry-After: \d+\r\n/);
      expect(answer).toMatch(/\r\nConnection: close\r\n/);
      expect(JSON.parse(answer.split("\r\n\r\n")[1] ?? "")).toMatchObject({ code: "TOO_BUSY", status: 503 });
    }
    for (const socket of kept) {
      socket.write(LIVEZ);
      await expect(
        new Promise((resolve) => socket.once("data", (chunk: Buffer) => resolve(chunk.toString()))),
      ).resolves.toMatch(/^HTTP\/1\.1 200 /);
    }
    kept[0]?.destroy();
    await expect
      .poll(async () => await rawAnswer(fixture, LIVEZ.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")))
      .toMatch(/ 200 /);
    kept[1]?.destroy();
    await expect.poll(() => metric(fixture, 'slotkeeper_refused_total{limit="connections"}')).toBeGreaterThanOrEqual(3);
    expect(warnings(fixture, "limit reached")).toHaveLength(1);
  });

  it("that are refused and send nothing are closed, too: none is left half open", async () => {
    const fixture = await startFixture({ config: { limits: { connections: 1 } } });
    await connection(fixture);
    const silent = await Promise.all(Array.from({ length: 20 }, () => connection(fixture)));
    await Promise.all(silent.map(everythingSaid));
    await expect.poll(() => fixture.service.connections).toBe(1);
  });

  it("that do not send HTTP are answered and closed even if the caller keeps its side open; they are logged and counted", async () => {
    const fixture = await startFixture();
    const answers = await Promise.all(Array.from({ length: 20 }, () => rawAnswer(fixture, "nonsense\r\n\r\n")));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    await expect.poll(() => fixture.service.connections).toBe(0);
    expect(await metric(fixture, "slotkeeper_bad_requests_total")).toBe(20);
    expect(warnings(fixture, "a client sent invalid HTTP").length).toBeGreaterThan(0);
  });

  it("of one address are limited by `limits.connectionsPerAddress`", async () => {
    const fixture = await startFixture({ config: { limits: { connectionsPerAddress: 1 } } });
    await connection(fixture);
    expect(await rawAnswer(fixture, LIVEZ)).toMatch(/^HTTP\/1\.1 503 /);
  });
});

describe("held polls", () => {
  const fairQueue = { maxSlotPerHost: 1, pollWindowMs: 3_600_000, pollIntervalMs: 3_600_000, maxWaitMs: 3_600_000 };

  it("above `limits.heldPolls` are 503 with Retry-After; the session keeps its place", async () => {
    const fixture = await startFixture({ config: { limits: { heldPolls: 2 }, fairQueue } });
    const slot = await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const held = [fixture.poll(queryToken), fixture.poll(queryToken)];
    await expect.poll(() => fixture.service.dump().hosts[0]?.waiting[0]?.polls).toBe(2);
    const refused = [await fixture.poll(queryToken), await fixture.acquire({ ipBucket: "c", waitMs: 1000 })];
    for (const reply of refused) {
      expect([reply.status, reply.body.code, reply.headers.get("retry-after")]).toEqual([503, "TOO_BUSY", "1"]);
    }
    expect(fixture.service.dump().sessions.pending).toBe(1);
    await fixture.release(slot.slotToken);
    for (const { body } of await Promise.all(held)) expect(body.result).toBe("granted");
    expect(await metric(fixture, 'slotkeeper_refused_total{limit="held_polls"}')).toBe(2);
    expect(warnings(fixture, "limit reached")).toHaveLength(1);
  });

  it("on one connection are held one at a time: pipelining does not avoid the limit", async () => {
    const fixture = await startFixture({ config: { limits: { heldPolls: 5 }, fairQueue } });
    await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const body = JSON.stringify({ queryToken });
    const call = `POST /api/v0/fairqueue/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    const polls = () => fixture.service.dump().hosts[0]?.waiting[0]?.polls;
    for (const open of [1, 2, 3, 4, 5, 5, 5]) {
      (await connection(fixture)).write(call.repeat(10));
      await expect.poll(polls).toBe(open);
    }
    await expect.poll(() => metric(fixture, 'slotkeeper_refused_total{limit="held_polls"}')).toBe(20);
    expect(polls()).toBe(5);
  });
});

describe("hosts", () => {
  it("above `limits.hosts` are 503 in every call that would create one; a release still works", async () => {
    const fixture = await startFixture({ config: { limits: { hosts: 2 } } });
    const { slotToken } = await fixture.take({ hostname: "one" });
    await fixture.call("report", { hostname: "two", status: 200 });
    const refused = [
      await fixture.call("report", { hostname: "three", status: 200 }),
      await fixture.call("acquire", { hostname: "three" }),
      await fixture.call("acquire", { hostname: "three", waitMs: 100 }),
    ];
    for (const reply of refused) {
      expect([reply.status, reply.body.code, reply.headers.get("retry-after")]).toEqual([503, "TOO_BUSY", "1"]);
    }
    expect((await fixture.call("release", { hostname: "three", slotToken: "nonsense" })).body.result).toBe("ok");
    expect((await fixture.call("report", { hostname: "one", status: 200 })).body.result).toBe("ok");
    expect(fixture.service.dump().hosts.map(({ hostname }) => hostname)).toEqual(["one", "two"]);
    expect((await fixture.release(slotToken, { hostname: "three" })).body.result).toBe("ok");
    expect((await fixture.call("renew", { slotToken })).status).toBe(410);
    expect(await metric(fixture, 'slotkeeper_refused_total{limit="hosts"}')).toBe(3);
  });
});
