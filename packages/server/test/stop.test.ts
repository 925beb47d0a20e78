import { describe, expect, it } from "vitest";
import { connection, everythingSaid } from "./raw-connection.ts";
import { startFixture, stopFixture } from "./service-fixture.ts";

const LONG = { maxSlotPerHost: 1, pollWindowMs: 3_600_000, maxWaitMs: 3_600_000 };

describe("a graceful stop", () => {
  it("turns /readyz to 503 first, answers held polls with pending, and holds no further ones", async () => {
    const fixture = await startFixture({ config: { fairQueue: LONG, tokenKeys: ["a key that outlives the process"] } });
    await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const held = [
      fixture.poll(queryToken),
      fixture.poll(queryToken),
      fixture.acquire({ ipBucket: "c", waitMs: 3_600_000 }),
    ];
    await expect.poll(() => fixture.service.dump().hosts[0]?.waiting.map(({ polls }) => polls)).toEqual([2, 1]);
    expect((await fixture.request("GET", "/readyz")).status).toBe(200);

    const stopped = stopFixture(fixture, { graceMs: 5_000, deadlineMs: 30_000 });
    const [ready, live] = [await fixture.request("GET", "/readyz"), await fixture.request("GET", "/livez")];
    expect([ready.status, ready.body.code, live.status]).toEqual([503, "NOT_READY", 200]);
    expect(ready.headers.get("connection")).toBe("close");
    for (const { body } of await Promise.all(held)) expect(body.result).toBe("pending");
    const late = await fixture.poll(queryToken);
    expect([late.body.result, late.headers.get("retry-after")]).toEqual(["pending", "1"]);
    await stopped;
    await expect(fetch(`${fixture.url}/livez`)).rejects.toThrow();
    expect(fixture.logged.join("")).toContain('"msg":"stopped"');
  });

  it("leaves the token of a waiting first call valid for the next process", async () => {
    const config = { fairQueue: LONG, tokenKeys: ["a key that outlives the process"] };
    const fixture = await startFixture({ config });
    await fixture.take({ ipBucket: "a" });
    const waiting = fixture.acquire({ ipBucket: "b", waitMs: 3_600_000 });
    await expect.poll(() => fixture.service.dump().hosts[0]?.waiting[0]?.polls).toBe(1);
    await stopFixture(fixture);
    const { queryToken } = (await waiting).body;
    const next = await startFixture({ config });
    expect((await next.poll(queryToken)).body.result).toBe("granted");
  });

  it("disconnects a caller that never finishes its request at its deadline", async () => {
    const fixture = await startFixture();
    const body = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode("{")) });
    const init = { method: "POST", body, duplex: "half" } as RequestInit;
    const never = fetch(`${fixture.url}/api/v0/fairqueue/acquire`, init);
    await fixture.request("GET", "/livez");
    const refused = expect(never).rejects.toThrow();
    await stopFixture(fixture, { graceMs: 0, deadlineMs: 50 });
    await refused;
  });

  it("does not wait for a connection that has sent nothing, such as those that browsers open in advance", async () => {
    const fixture = await startFixture();
    const silent = await connection(fixture);
    await fixture.request("GET", "/livez");
    const said = everythingSaid(silent);
    await stopFixture(fixture, { graceMs: 0, deadlineMs: 60_000 });
    expect(await said).toBe("");
  }, 5_000);

  it("that is requested twice is one stop", async () => {
    const fixture = await startFixture();
    await Promise.all([fixture.service.stop(), fixture.service.stop()]);
    expect(fixture.logged.filter((line) => line.includes('"msg":"stopping"'))).toHaveLength(1);
  });
});

describe("connections", () => {
  it("are kept alive for longer than the idle minute of a load balancer", async () => {
    const fixture = await startFixture();
    const { headers } = await fixture.request("GET", "/livez");
    expect(Number(/timeout=(\d+)/.exec(headers.get("keep-alive") ?? "")?.[1])).toBeGreaterThan(60);
  });
});
