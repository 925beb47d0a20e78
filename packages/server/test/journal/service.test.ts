import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { bundleChild, Child } from "./bundled-child.ts";

let program: string;
let journal: string;

beforeAll(async () => {
  program = await bundleChild("service-child.ts");
});
afterAll(async () => {
  await rm(join(program, "..", ".."), { recursive: true });
});
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "slotkeeper-journal-"));
  journal = join(folder, "journal");
  return () => rm(folder, { recursive: true });
});

interface Answer {
  readonly result: string;
  readonly queryToken: string;
  readonly slotToken?: string;
  readonly fence?: number;
  readonly blockedBy?: string;
}

/** A service in a process that can be killed. `before`: a command that starts the process. */
async function serve(before: readonly string[] = []) {
  const child = new Child([...before, process.execPath, program, journal]);
  await child.received(1);
  const url = child.lines[0]?.["url"] as string | undefined;
  if (url === undefined) throw new Error(await child.ended());
  const call = async (name: string, body: object): Promise<Answer> => {
    const response = await fetch(`${url}/api/v0/fairqueue/${name}`, { method: "POST", body: JSON.stringify(body) });
    return (await response.json()) as Answer;
  };
  const readyz = async () => (await fetch(`${url}/readyz`)).status;
  return { call, readyz, kill: () => child.kill() };
}

describe("the service with a journal", () => {
  test("continues with the time of its journal if the clock was set back before a restart", async () => {
    const first = { hostname: "h.example", waitMs: 400 };
    const one = await serve();
    expect(await one.call("acquire", { ...first, ipBucket: "a" })).toMatchObject({ result: "granted" });
    await one.kill();
    // The origin is the only reading of the wall clock.
    const program = "Object.defineProperty(performance,'timeOrigin',{value:performance.timeOrigin-36e5})";
    const hourBack = `data:text/javascript,${encodeURIComponent(program)}`;
    const two = await serve(["env", `NODE_OPTIONS=--import=${hourBack}`]);
    expect(await two.call("acquire", { ...first, ipBucket: "b" })).toMatchObject({ result: "granted" });
    await two.kill();
  });

  test("restores its sessions, slots, ends and keys after a kill", async () => {
    const one = await serve();
    const first = { hostname: "h.example", waitMs: 400 };
    const held = await one.call("acquire", { ...first, ipBucket: "a" });
    const over = await one.call("acquire", { ...first, ipBucket: "b" });
    await one.call("release", { slotToken: over.slotToken });
    await one.call("acquire", { ...first, ipBucket: "b", requestId: "after the release" });
    const waiting = await one.call("acquire", { ...first, ipBucket: "a" });
    expect([held.result, over.result, waiting.result]).toEqual(["granted", "granted", "pending"]);
    await one.kill();
    const two = await serve();
    expect(await two.call("acquire", { queryToken: held.queryToken })).toMatchObject({
      result: "granted",
      slotToken: held.slotToken,
      fence: held.fence,
    });
    expect(await two.call("acquire", { queryToken: over.queryToken })).toMatchObject({ result: "timeout" });
    expect(await two.call("acquire", { queryToken: waiting.queryToken })).toMatchObject({ result: "pending" });
    await two.call("release", { slotToken: held.slotToken });
    const next = await two.call("acquire", { queryToken: waiting.queryToken });
    expect(next.result).toBe("granted");
    expect(next.fence).toBeGreaterThan(held.fence ?? 0);
    await two.kill();
  });

  test("grants sessions that waited before a kill ahead of new ones", async () => {
    const one = await serve();
    const host = { hostname: "sem:one", limit: 1 };
    const held = await one.call("acquire", { ...host, waitMs: 400 });
    const first = await one.call("acquire", { ...host, ipBucket: "b", waitMs: 200 });
    const second = await one.call("acquire", { ...host, ipBucket: "c", waitMs: 200 });
    expect([held.result, first.result, second.result]).toEqual(["granted", "pending", "pending"]);
    await one.kill();
    const two = await serve();
    // A new session arrives first and asks for the slot before it is free. The sessions from before the restart poll
    // only after that.
    const newcomer = two.call("acquire", { ...host, ipBucket: "n", waitMs: 500 });
    await two.call("acquire", { ...host, ipBucket: "m" });
    await two.call("release", { slotToken: held.slotToken });
    expect(await two.call("acquire", { queryToken: first.queryToken })).toMatchObject({ result: "granted" });
    expect(await newcomer).toMatchObject({ result: "pending" });
    await two.kill();
  });

  test("grants nothing on a full disk, reports it, and is not ready", async () => {
    // One block of 1,024 bytes: enough for an empty journal, but not for a lease.
    const full = await serve(["bash", "-c", 'ulimit -f 1; exec "$@"', "bash"]);
    expect(await full.readyz()).toBe(200);
    const asked = await full.call("acquire", { hostname: "h.example", ipBucket: "a", waitMs: 400 });
    expect(asked).toMatchObject({ result: "pending", blockedBy: "store" });
    expect(await full.readyz()).toBe(503);
    await full.kill();
    // With room again, the session still has its place.
    const roomy = await serve();
    expect(await roomy.readyz()).toBe(200);
    expect(await roomy.call("acquire", { queryToken: asked.queryToken })).toMatchObject({ result: "granted" });
    await roomy.kill();
  });

  test("starts on a disk without any room, grants nothing, and is not ready", async () => {
    const before = await serve();
    const held = await before.call("acquire", { hostname: "h.example", ipBucket: "a", waitMs: 400 });
    await before.kill();
    const full = await serve(["bash", "-c", 'ulimit -f 0; exec "$@"', "bash"]);
    expect(await full.readyz()).toBe(503);
    const asked = await full.call("acquire", { hostname: "h.example", ipBucket: "b", waitMs: 400 });
    expect(asked).toMatchObject({ result: "pending", blockedBy: "store" });
    await full.kill();
    const roomy = await serve();
    expect(await roomy.readyz()).toBe(200);
    expect(await roomy.call("acquire", { queryToken: held.queryToken })).toMatchObject({ slotToken: held.slotToken });
    await roomy.kill();
  });
});
