import type { Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { connection, rawAnswer } from "./raw-connection.ts";
import { type Fixture, startFixture } from "./service-fixture.ts";

/** Only an event can answer in time: neither the window nor the fallback cycle ends within a test. */
const EVENTS_ONLY = { maxSlotPerHost: 1, pollWindowMs: 3_600_000, pollIntervalMs: 3_600_000, maxWaitMs: 3_600_000 };
const LIVEZ = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";

const post = (name: string, body: object) => {
  const text = JSON.stringify(body);
  return `POST /api/v0/fairqueue/${name} HTTP/1.1\r\nHost: x\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
};
const waiting = (fixture: Fixture) => fixture.service.dump().hosts.flatMap((host) => [...host.waiting]);
const openPolls = (fixture: Fixture) => waiting(fixture).reduce((sum, { polls }) => sum + polls, 0);
const served = (fixture: Fixture, path: string) =>
  fixture.logged.filter((line) => line.includes('"msg":"request"') && line.includes(`"path":"${path}"`)).length;

/** The statuses of the next `count` answers. */
function answersOn(socket: Socket, count: number): Promise<string[]> {
  const statuses: string[] = [];
  let rest = "";
  return new Promise((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      rest += chunk.toString("latin1");
      const lines = rest.split("\r\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.includes("HTTP/1.1 ")) statuses.push(/HTTP\/1\.1 (\d+)/.exec(line)?.[1] ?? "");
      if (statuses.length >= count) resolve(statuses);
    });
  });
}

describe("requests that a caller sends before the answer to its last one", () => {
  it("are served one after the other, in their order, and none is lost", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY, logLevel: "debug" } });
    const slot = await fixture.take({ ipBucket: "a" });
    const socket = await connection(fixture);
    const answers = answersOn(socket, 16);
    socket.write(post("acquire", { hostname: "example.com", ipBucket: "b", waitMs: 3_600_000 }) + LIVEZ.repeat(15));
    await expect.poll(() => openPolls(fixture)).toBe(1);
    expect(served(fixture, "/livez")).toBe(0);
    await fixture.release(slot.slotToken);
    expect(await answers).toEqual(Array.from({ length: 16 }, () => "200"));
  });

  it("are answered at once instead of held, if many more wait behind: a connection that is not read shows no end", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY } });
    await fixture.take({ ipBucket: "a" });
    const poll = post("acquire", { hostname: "example.com", ipBucket: "b", waitMs: 3_600_000 });
    const [early, late] = [await connection(fixture), await connection(fixture)];
    const answers = [answersOn(early, 1501), answersOn(late, 1501)];
    early.write(poll + LIVEZ.repeat(1500));
    late.write(poll);
    await expect.poll(() => openPolls(fixture)).toBe(1);
    late.write(LIVEZ.repeat(1500));
    for (const statuses of await Promise.all(answers)) {
      expect(statuses).toEqual(Array.from({ length: 1501 }, () => "200"));
    }
    expect(openPolls(fixture)).toBe(0);
  });

  it("are answered before invalid HTTP behind them is refused", async () => {
    const fixture = await startFixture({ config: { fairQueue: EVENTS_ONLY } });
    const slot = await fixture.take({ ipBucket: "a" });
    const socket = await connection(fixture);
    const answers = answersOn(socket, 4);
    socket.write(post("acquire", { hostname: "example.com", ipBucket: "b", waitMs: 3_600_000 }) + LIVEZ.repeat(2));
    socket.write("nonsense\r\n\r\n");
    await expect.poll(() => openPolls(fixture)).toBe(1);
    await fixture.release(slot.slotToken);
    expect(await answers).toEqual(["200", "200", "200", "400"]);
  });

  it("do not wait for a body that never becomes valid", async () => {
    const fixture = await startFixture();
    const torn =
      "POST /api/v0/fairqueue/release HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello, world\r\n";
    expect(await rawAnswer(fixture, torn)).toMatch(/^HTTP\/1\.1 400 /);
    const both = await rawAnswer(fixture, LIVEZ + torn);
    expect([...both.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)).toEqual(["200", "400"]);
  });

  it("are not read without end while the caller does not read the answers", async () => {
    const fixture = await startFixture();
    const socket = await connection(fixture);
    socket.pause();
    // Far more than the buffers of two sockets: the system accepts all of it only if the service reads it.
    const flood = Buffer.from(LIVEZ.repeat(1_000_000));
    let isWritten = false;
    socket.write(flood, () => {
      isWritten = true;
    });
    for (let turn = 0; turn < 50; turn++) await fixture.request("GET", "/livez");
    expect(isWritten).toBe(false);
  });

  it("end with their connection: a poll behind another one is never open without its caller", async () => {
    const fixture = await startFixture({ config: { fairQueue: { ...EVENTS_ONLY, collectMs: 1 } } });
    const slot = await fixture.take({ ipBucket: "a" });
    const first = (await fixture.acquire({ ipBucket: "b" })).body.queryToken;
    const second = (await fixture.acquire({ ipBucket: "c" })).body.queryToken;
    const socket = await connection(fixture);
    socket.write(post("acquire", { queryToken: first }) + post("acquire", { queryToken: second }));
    await expect.poll(() => openPolls(fixture)).toBeGreaterThan(0);
    socket.destroy();
    await expect.poll(() => openPolls(fixture)).toBe(0);
    await expect.poll(() => waiting(fixture).some(({ isAwake }) => isAwake)).toBe(false);
    const honest = fixture.acquire({ ipBucket: "d", waitMs: 3_600_000 });
    await expect.poll(() => openPolls(fixture)).toBe(1);
    await fixture.release(slot.slotToken);
    expect((await honest).body.result).toBe("granted");
  });

  it("share the bytes of a static answer: the service makes it once", async () => {
    const fixture = await startFixture();
    const made = await fixture.request("GET", "/openapi.json");
    const stringify = vi.spyOn(JSON, "stringify");
    expect((await fixture.request("GET", "/openapi.json")).text).toBe(made.text);
    const documents = stringify.mock.calls.filter(([value]) => Object.hasOwn(Object(value), "openapi"));
    expect(documents).toHaveLength(0);
  });

  it("get their answers although the caller reads slowly", async () => {
    const fixture = await startFixture();
    const socket = await connection(fixture);
    socket.pause();
    socket.write("GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n".repeat(300));
    for (let turn = 0; turn < 20; turn++) await fixture.request("GET", "/livez");
    const answers = answersOn(socket, 300);
    socket.resume();
    expect(await answers).toHaveLength(300);
  });
});
