// The commands that call a service, against a real one, as processes.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { build, type Command, slotkeeper } from "./command.ts";

const directory = mkdtempSync(join(tmpdir(), "slotkeeper-cli-client-"));
beforeAll(build, 120_000);
afterAll(() => rmSync(directory, { recursive: true }));

async function serve(environment: Record<string, string> = {}): Promise<string> {
  return slotkeeper(["serve", "--listen", "127.0.0.1:0"], environment).url();
}

async function done(command: Command): Promise<{ code: unknown; out: string; err: string }> {
  const code = await command.exited;
  return { code, out: command.out, err: command.err };
}

async function inUse(url: string): Promise<number> {
  const { hosts } = (await (await fetch(`${url}/api/v0/state`)).json()) as { hosts: { inFlight: number }[] };
  return hosts.reduce((sum, { inFlight }) => sum + inFlight, 0);
}

async function pending(url: string): Promise<number> {
  const state = (await (await fetch(`${url}/api/v0/state`)).json()) as { sessions: { pending: number } };
  return state.sessions.pending;
}

describe("acquire, status and release", () => {
  test("a slot is acquired, shown and released", async () => {
    const url = await serve();
    const taken = await done(slotkeeper(["acquire", "--url", url, "--host", "example.com", "--bucket", "me"]));
    expect([taken.code, taken.err]).toEqual([0, ""]);
    expect(taken.out).toMatch(/^\S{22,}\n$/);
    const shown = await done(slotkeeper(["status", "--url", url]));
    expect(shown.out).toMatch(/^HOST {9}SLOTS {2}WAITING {2}OLDEST {2}BREAKER\nexample\.com {2}1\/5 +0 +- +closed\n$/);
    const json = await done(slotkeeper(["status", "--url", url, "--host", "example.com", "--json"]));
    expect(JSON.parse(json.out)).toMatchObject({ total: 1, hosts: [{ hostname: "example.com", inFlight: 1 }] });
    const released = await done(slotkeeper(["release", taken.out.trim(), "--status", "200", "--url", url]));
    expect([released.code, released.out]).toEqual([0, "released\n"]);
    expect(await inUse(url)).toBe(0);
  });

  test("an empty variable for the internal token counts as absent, for status and top", async () => {
    const url = await serve();
    for (const name of ["status", "top"]) {
      const shown = slotkeeper([name, "--url", url, "--json"], { SLOTKEEPER_INTERNAL_API_TOKEN: "" });
      expect(await done(shown)).toMatchObject({ code: 0, err: "" });
    }
  });

  test("a name cannot change the text direction of the table", async () => {
    const url = await serve();
    await done(slotkeeper(["acquire", "--url", url, "--host", "a\u202Eb"]));
    const { out } = await done(slotkeeper(["status", "--url", url]));
    expect(out).toMatch(/^a\\u\{202e\}b {2}1\/5 /m);
  });

  test("a semaphore without users is shown without a number of slots", async () => {
    const url = await serve();
    const taken = await done(slotkeeper(["acquire", "--url", url, "--host", "jobs", "--max", "3"]));
    expect((await done(slotkeeper(["status", "--url", url]))).out).toMatch(/^sem:jobs {2}1\/3 /m);
    await done(slotkeeper(["release", "--url", url, taken.out.trim()]));
    expect((await done(slotkeeper(["status", "--url", url]))).out).toMatch(/^sem:jobs {2}0\/- /m);
  });

  test("a semaphore that is full is exit code 6, as a sentence or as JSON", async () => {
    const url = await serve();
    const one = ["acquire", "--url", url, "--host", "jobs", "--max", "1", "--timeout", "0.3"];
    const first = await done(slotkeeper([...one, "--json"]));
    expect(JSON.parse(first.out)).toMatchObject({ slotToken: expect.any(String), fence: expect.any(Number) });
    const [text, json] = await Promise.all([done(slotkeeper(one)), done(slotkeeper([...one, "--json"]))]);
    expect([text.code, text.out]).toEqual([6, ""]);
    expect(text.err).toMatch(/^Waited \d+ ms for a slot of "sem:jobs"/);
    expect(JSON.parse(json.err)).toMatchObject({ error: "ACQUIRE_TIMEOUT" });
  });

  test("the shared key comes from a flag or the environment; without it the service refuses the call", async () => {
    const key = "a-shared-key-of-some-length";
    const url = await serve({ SLOTKEEPER_AUTH__ENABLED: "true", SLOTKEEPER_AUTH__TOKEN: key });
    const ask = ["acquire", "--url", url, "--host", "example.com"];
    const keyless =
      /status 401: The shared key is missing or wrong\. Give it by SLOTKEEPER_AUTH__TOKEN or --token\.\n$/;
    expect(await done(slotkeeper(ask))).toMatchObject({ code: 8, err: expect.stringMatching(keyless) });
    expect(await done(slotkeeper([...ask, "--token", key]))).toMatchObject({ code: 0 });
    const { code, out } = await done(slotkeeper(ask, { SLOTKEEPER_AUTH__TOKEN: key }));
    expect(code).toBe(0);
    const release = ["release", out.trim(), "--url", url];
    expect(await done(slotkeeper(release))).toMatchObject({ code: 8, err: expect.stringMatching(keyless) });
    expect(await done(slotkeeper(release, { SLOTKEEPER_AUTH__TOKEN: key }))).toMatchObject({ code: 0 });
  });

  test("the state needs the internal token if one is set, and the message says so", async () => {
    const token = "an-internal-token-of-some-length";
    const url = await serve({ SLOTKEEPER_INTERNAL_API_TOKEN: token });
    const refused = await done(slotkeeper(["status", "--url", url]));
    expect(refused).toMatchObject({ code: 8, err: expect.stringContaining("--internal-token") });
    const shown = await done(slotkeeper(["status", "--url", url], { SLOTKEEPER_INTERNAL_API_TOKEN: token }));
    expect(shown).toMatchObject({ code: 0, out: "No host has slots or waiters.\n" });
  });

  test("an unreachable service is exit code 7", async () => {
    const nowhere = ["--url", "http://127.0.0.1:1"];
    const all = [
      slotkeeper(["acquire", ...nowhere, "--host", "h", "--timeout", "0.2"]),
      slotkeeper(["release", "token", ...nowhere]),
      slotkeeper(["status", ...nowhere]),
    ];
    for (const command of all) {
      expect(await done(command)).toMatchObject({ code: 7, err: expect.stringContaining("is unavailable") });
    }
  });

  test.each([
    [["--token", "hush\nhush"], "--token"],
    [["--header", "hush hush"], "--header"],
    [["--url", "http://me:hush@127.0.0.1:1"], "--url"],
    [["--url", "http://127.0.0.1:1/?key=hush"], "--url"],
    [["--url", "http://127.0.0.1:1/#hush"], "--url"],
  ])("%j, which no request can contain, is exit code 2 and is not shown", async (flags, name) => {
    const key = { SLOTKEEPER_AUTH__TOKEN: "a-key" };
    const commands = [
      slotkeeper(["acquire", "--host", "h", "--url", "http://127.0.0.1:1", ...flags], key),
      slotkeeper(["release", "token", "--url", "http://127.0.0.1:1", ...flags], key),
      slotkeeper(["exec", "--host", "h", "--url", "http://127.0.0.1:1", ...flags, "--", "true"], key),
    ];
    if (name === "--url") commands.push(slotkeeper(["status", ...flags]));
    for (const command of commands) {
      const { code, out, err } = await done(command);
      expect([code, out, err.includes(`Expected ${name}`), err.includes("hush")]).toEqual([2, "", true, false]);
    }
  });

  test("a bearer that no request can contain is exit code 2 and is not shown", async () => {
    const { code, err } = await done(slotkeeper(["status"], { SLOTKEEPER_INTERNAL_API_TOKEN: "hush\nhush" }));
    expect([code, err.includes("--internal-token"), err.includes("hush")]).toEqual([2, true, false]);
  });

  test("the token of a release may come at any position, also after --", async () => {
    const url = await serve();
    for (const args of [
      ["--url", url, "TOKEN"],
      ["--url", url, "--", "TOKEN"],
      ["--url", url, "--status", "200", "TOKEN", "--json"],
    ]) {
      const taken = await done(slotkeeper(["acquire", "--url", url, "--host", "example.com"]));
      expect(await inUse(url)).toBe(1);
      const released = slotkeeper(["release", ...args.map((arg) => (arg === "TOKEN" ? taken.out.trim() : arg))]);
      expect(await done(released)).toMatchObject({ code: 0, err: "" });
      expect(await inUse(url)).toBe(0);
    }
    expect(await done(slotkeeper(["release", ""]))).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^The token is empty/),
    });
    expect(await done(slotkeeper(["release", "a", "b"]))).toMatchObject({
      code: 2,
      err: expect.stringMatching(/got 2\./),
    });
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "a %s during the wait ends it, and leaves no place in the queue",
    async (signal) => {
      const url = await serve();
      const one = ["acquire", "--url", url, "--host", "jobs", "--max", "1"];
      expect(await slotkeeper(one).exited).toBe(0);
      const waiting = slotkeeper(one);
      await expect.poll(() => pending(url), { timeout: 10_000 }).toBe(1);
      waiting.kill(signal);
      expect(await waiting.exited).toBe(128 + constants.signals[signal]);
      await expect.poll(() => pending(url)).toBe(0);
    },
  );

  test("status names the host that it did not find", async () => {
    const shown = await done(slotkeeper(["status", "--url", await serve(), "--host", "no.such.example"]));
    expect(shown).toMatchObject({ code: 0, out: 'The host "no.such.example" has no slots or waiters.\n' });
  });

  test("all mistakes are named at once, with the command that shows the help", async () => {
    const wrong = await done(slotkeeper(["acquire", "--max", "none", "--timeout", "soon"]));
    expect(wrong.code).toBe(2);
    expect(wrong.err).toMatch(
      /--host is required\.\nExpected --max .*"none"\.\nExpected --timeout .*"soon"\.\nRun `slotkeeper acquire --help`/,
    );
    expect(await done(slotkeeper(["release"]))).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^Expected the token of a slot/),
    });
    expect(await done(slotkeeper(["acquire", "--host", "h", "--url", "nonsense"]))).toMatchObject({ code: 2 });
    expect(await done(slotkeeper(["exec", "--host", "h", "--url", "http://127.0.0.1:1"]))).toMatchObject({
      code: 2,
      err: expect.stringContaining("Expected a command after `--`"),
    });
  });
});

describe("exec", () => {
  const exec = (url: string, ...command: string[]) =>
    slotkeeper(["exec", "--url", url, "--host", "jobs", "--max", "1", "--", ...command]);

  test("runs the command while it holds a slot, returns its exit code, and releases", async () => {
    const url = await serve();
    const running = exec(url, process.execPath, "-e", "console.log('runs'); setTimeout(() => process.exit(42), 300)");
    await running.said(/runs/);
    expect(await inUse(url)).toBe(1);
    expect(await running.exited).toBe(42);
    expect(await inUse(url)).toBe(0);
  });

  test("never runs two commands at once if there is one slot", async () => {
    const url = await serve();
    const log = join(directory, "log");
    const script = `const f = require("fs"); f.appendFileSync(${JSON.stringify(log)}, "+"); setTimeout(() => f.appendFileSync(${JSON.stringify(log)}, "-"), 100)`;
    const commands = [1, 2, 3].map(() => exec(url, process.execPath, "-e", script));
    expect(await Promise.all(commands.map(({ exited }) => exited))).toEqual([0, 0, 0]);
    expect(readFileSync(log, "utf8")).toBe("+-+-+-");
  });

  test("passes a SIGTERM on to the command, returns its exit code, and releases the slot", async () => {
    const url = await serve();
    const running = exec(url, process.execPath, "-e", "console.log('runs'); setInterval(() => {}, 1000)");
    await running.said(/runs/);
    running.kill("SIGTERM");
    expect(await running.exited).toBe(128 + 15);
    expect(await inUse(url)).toBe(0);
  });

  test("a SIGTERM during the wait ends it, and leaves no place in the queue", async () => {
    const url = await serve();
    const holder = exec(url, process.execPath, "-e", "console.log('runs'); setInterval(() => {}, 1000)");
    await holder.said(/runs/);
    const waiting = exec(url, "true");
    await expect.poll(() => pending(url), { timeout: 10_000 }).toBe(1);
    waiting.kill("SIGTERM");
    expect(await waiting.exited).toBe(128 + 15);
    await expect.poll(() => pending(url)).toBe(0);
    holder.kill("SIGTERM");
    await holder.exited;
  });

  test("exits with 127 if the command cannot be started, and ends the command with 9 if the slot is lost", async () => {
    const url = await serve({ SLOTKEEPER_FAIR_QUEUE__ZOMBIE_TIMEOUT_SECONDS: "1" });
    expect(await done(exec(url, "no-such-command"))).toMatchObject({
      code: 127,
      err: expect.stringContaining("Cannot start"),
    });
    expect(await inUse(url)).toBe(0);
    const service = slotkeeper(["serve", "--listen", "127.0.0.1:0"], {
      SLOTKEEPER_FAIR_QUEUE__ZOMBIE_TIMEOUT_SECONDS: "1",
    });
    const running = exec(
      await service.url(),
      process.execPath,
      "-e",
      "console.log('runs'); setInterval(() => {}, 1000)",
    );
    await running.said(/runs/);
    service.kill("SIGKILL");
    expect(await running.exited).toBe(9);
    expect(running.err).toMatch(/was lost after \d+ ms: its lease ended\. The command gets SIGTERM\./);
  });
});
