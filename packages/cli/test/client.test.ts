// The commands that call a service, against a real one, as processes.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { BIN, Command, cannotStart, slotkeeper } from "./command.ts";
import { TerminalSession } from "./terminal.ts";

const directory = mkdtempSync(join(tmpdir(), "slotkeeper-cli-client-"));
afterAll(() => rmSync(directory, { recursive: true }));

async function serve(environment: Record<string, string> = {}): Promise<string> {
  return slotkeeper(["serve", "--listen", "127.0.0.1:0"], environment).url();
}

/** A stand-in that gives each call the same answer: for answers that a real service gives only when it is broken. */
async function answering(answer: object): Promise<string> {
  const server = createServer((_request, response) => response.end(JSON.stringify(answer)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  standIns.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const standIns: (() => void)[] = [];
afterEach(() => {
  for (const close of standIns.splice(0)) close();
});

/** An address at which nothing listens. */
async function deserted(): Promise<string> {
  const url = await answering({});
  standIns.pop()?.();
  return url;
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

describe("widths and costs", () => {
  const budgets = { tokens: { limit: 1_000, perSeconds: 1_000_000, default: 1 } };
  const environment = { SLOTKEEPER_FAIR_QUEUE__HOSTS: JSON.stringify({ "example.com": { budgets } }) };

  async function leftOf(url: string): Promise<number> {
    const state = (await (await fetch(`${url}/api/v0/state`)).json()) as {
      hosts: { budgets?: { available: number }[] }[];
    };
    return Math.floor(state.hosts[0]?.budgets?.[0]?.available ?? -1);
  }

  test("acquire takes its slots and units together, and release --used gives back what was not used", async () => {
    const url = await serve(environment);
    const asked = ["--host", "example.com", "--width", "2", "--cost", "tokens=600.5"];
    const taken = await done(slotkeeper(["acquire", "--url", url, ...asked, "--json"]));
    const { slotToken, charged } = JSON.parse(taken.out) as { slotToken: string; charged: object };
    expect([charged, await inUse(url), await leftOf(url)]).toEqual([{ tokens: 600.5 }, 2, 399]);
    const released = await done(slotkeeper(["release", "--url", url, "--used", "tokens=100", slotToken]));
    expect(released).toEqual({ code: 0, out: "released\n", err: "" });
    expect([await inUse(url), await leftOf(url)]).toEqual([0, 900]);
  });

  test("exec charges its cost", async () => {
    const url = await serve(environment);
    const command = ["--cost", "tokens=250", "--", process.execPath, "-e", ""];
    expect((await done(slotkeeper(["exec", "--url", url, "--host", "example.com", ...command]))).code).toBe(0);
    expect(await leftOf(url)).toBe(750);
  });

  test("release says what it ignored, and releases the slot", async () => {
    const url = await serve(environment);
    const { out } = await done(slotkeeper(["acquire", "--url", url, "--host", "example.com"]));
    const released = await done(slotkeeper(["release", "--url", url, "--used", "images=3", "--json", out.trim()]));
    expect(JSON.parse(released.out)).toEqual({ result: "ok", ignored: ["used.images"] });
    expect([released.code, released.err, await inUse(url)]).toEqual([
      0,
      "The service ignored used.images: no such charge.\n",
      0,
    ]);
  });

  test.each([
    [["acquire", "--host", "h", "--cost", "tokens"], "Expected --cost to be the name of a budget and a number"],
    [["acquire", "--host", "h", "--cost", "tokens=-1"], 'like tokens=3000, got "tokens=-1".'],
    [["acquire", "--host", "h", "--max", "2", "--cost", "tokens=1"], "--max and --cost cannot be combined"],
    [["exec", "--name", "n", "--cost", "tokens=1", "--", "true"], "--name and --cost cannot be combined."],
    [["release", "token", "--used", "=3"], "Expected --used to be the name of a budget and a number"],
  ])("%j exits 2 and says why", async (args, text) => {
    const { code, err } = await done(slotkeeper(args));
    expect([code, err]).toEqual([2, expect.stringContaining(text)]);
  });

  test("a cost that the budget can never pay is refused with the field", async () => {
    const url = await serve(environment);
    const { code, err } = await done(
      slotkeeper(["acquire", "--url", url, "--host", "example.com", "--cost", "tokens=1001"]),
    );
    expect([code, err]).toEqual([8, expect.stringMatching(/cost\.tokens.*1000/)]);
  });
});

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

  test("--key sends the values of keys, and a wrong one is refused before the service is asked", async () => {
    const url = await serve();
    const asked = ["acquire", "--url", url, "--host", "example.com"];
    const refused = await done(slotkeeper([...asked, "--key", "tenant=a=b"]));
    expect([refused.code, refused.err]).toEqual([expect.any(Number), expect.stringContaining("got a=b")]);
    const wrong = await done(slotkeeper([...asked, "--key", "tenant"]));
    expect(wrong.err).toContain('Expected --key to be a name and a value, like tenant=acme, got "tenant".');
  });

  test("--class sends the class of the request, and cannot be combined with a semaphore", async () => {
    const classes = { chat: { weight: 4 } };
    const url = await serve({ SLOTKEEPER_FAIR_QUEUE__HOSTS: JSON.stringify({ "example.com": { classes } }) });
    const taken = await done(slotkeeper(["acquire", "--url", url, "--host", "example.com", "--class", "chat"]));
    expect([taken.code, taken.err]).toEqual([0, ""]);
    const shown = await done(slotkeeper(["status", "--url", url, "--host", "example.com", "--json"]));
    expect(JSON.parse(shown.out)).toMatchObject({ hosts: [{ slots: [{ class: "chat" }] }] });
    const wrong = await done(slotkeeper(["acquire", "--host", "jobs", "--max", "2", "--class", "chat"]));
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("--max and --class cannot be combined.")]);
    const named = await done(slotkeeper(["exec", "--name", "gpu", "--class", "chat", "--", "true"]));
    expect([named.code, named.err]).toEqual([2, expect.stringContaining("--name and --class cannot be combined.")]);
  });

  test("an empty variable for the internal token counts as absent, for status and top", async () => {
    const url = await serve();
    for (const name of ["status", "top"]) {
      const empty = { SLOTKEEPER_INTERNAL_TOKEN: "", SLOTKEEPER_INTERNAL_API_TOKEN: "" };
      const shown = slotkeeper([name, "--url", url, "--json"], empty);
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
    const one = ["acquire", "--url", url, "--host", "jobs", "--max", "1", "--timeout", "2"];
    const first = await done(slotkeeper([...one, "--json"]));
    expect(JSON.parse(first.out)).toMatchObject({ slotToken: expect.any(String), fence: expect.any(Number) });
    const [text, json] = await Promise.all([done(slotkeeper(one)), done(slotkeeper([...one, "--json"]))]);
    expect([text.code, text.out]).toEqual([6, ""]);
    const why =
      /^Waited [\d.]+ m?s for a slot of "sem:jobs": place [12] of [12], 1 of 1 in use, longest hold [\d.]+ m?s\.\n$/;
    expect(text.err).toMatch(why);
    expect(JSON.parse(json.err)).toMatchObject({ error: "ACQUIRE_TIMEOUT", message: expect.stringMatching(/place/) });
  });

  test("a wait that times out names the holder of the bucket's slot; without the internal token only the cause", async () => {
    const token = { SLOTKEEPER_INTERNAL_TOKEN: "an-internal-token-of-some-length" };
    const url = await serve({ SLOTKEEPER_INTERNAL_API_TOKEN: token.SLOTKEEPER_INTERNAL_TOKEN });
    const ask = ["acquire", "--url", url, "--host", "h", "--bucket", "me", "--timeout", "2"];
    expect(await done(slotkeeper(ask))).toMatchObject({ code: 0 });
    const [withToken, without] = await Promise.all([done(slotkeeper(ask, token)), done(slotkeeper(ask))]);
    expect(withToken.err).toMatch(/: place \d of \d, bucket at its limit, held by me since [\d.]+ m?s\.\n$/);
    expect(without.err).toMatch(/: place \d of \d, bucket at its limit\.\n$/);
  });

  test("a wait that times out because the service cannot reach its store says so", async () => {
    const pending = { result: "pending", queryToken: "q", position: 1, waiters: 1, blockedBy: "store" };
    const ask = ["acquire", "--url", await answering(pending), "--host", "h", "--timeout", "0.5"];
    expect(await done(slotkeeper(ask))).toMatchObject({
      code: 6,
      err: expect.stringMatching(/: place 1 of 1, the service cannot reach its store\.\n$/),
    });
  });

  test("a release that released nothing says so and exits 1, also as JSON", async () => {
    const url = await answering({ result: "ok", released: false });
    const [text, json] = await Promise.all([
      done(slotkeeper(["release", "nonsense", "--url", url])),
      done(slotkeeper(["release", "nonsense", "--url", url, "--json"])),
    ]);
    expect([text.code, text.out]).toEqual([1, ""]);
    expect(text.err).toMatch(/^Nothing was released: this token holds no slot/);
    expect([json.code, JSON.parse(json.out)]).toEqual([1, { result: "ok", released: false }]);
  });

  test.each([
    ["text", []],
    ["JSON", ["--json"]],
  ])("an acquire whose output, %s, has no reader keeps no slot, says so and exits 1", async (_format, json) => {
    const url = await serve();
    const asked = slotkeeper(["acquire", "--url", url, "--host", "h", ...json]);
    asked.process.stdout?.destroy();
    expect(await done(asked)).toMatchObject({ code: 1, err: expect.stringContaining("token") });
    expect(await inUse(url)).toBe(0);
  });

  test.each([">&-", ">/dev/null"])(
    "an acquire with the output %s takes no slot, says so and exits 1",
    async (output) => {
      const url = await serve();
      const asked = [process.execPath, BIN, "acquire", "--url", url, "--host", "h"];
      const { code, err } = await done(new Command("sh", ["-c", `exec "$@" ${output}`, "sh", ...asked]));
      expect([code, err]).toEqual([1, expect.stringContaining("token")]);
      expect(await inUse(url)).toBe(0);
    },
  );

  test("every command takes the address from SLOTKEEPER_URL; the flag goes first", async () => {
    const key = "a-shared-key-of-some-length";
    const token = "an-internal-token-of-some-length";
    const url = await serve({
      SLOTKEEPER_AUTH__ENABLED: "true",
      SLOTKEEPER_AUTH__TOKEN: key,
      SLOTKEEPER_INTERNAL_API_TOKEN: token,
      // The commands' own variables do not concern the service.
      SLOTKEEPER_URL: "http://127.0.0.1:9",
      SLOTKEEPER_TOKEN: "another",
      SLOTKEEPER_INTERNAL_TOKEN: "another",
    });
    const variables = { SLOTKEEPER_URL: url, SLOTKEEPER_TOKEN: key, SLOTKEEPER_INTERNAL_TOKEN: token };
    const taken = await done(slotkeeper(["acquire", "--host", "example.com"], variables));
    expect(taken).toMatchObject({ code: 0, err: "" });
    expect((await done(slotkeeper(["status"], variables))).out).toContain("example.com  1/5");
    expect((await done(slotkeeper(["top"], variables))).out).toContain("example.com");
    expect(await done(slotkeeper(["release", taken.out.trim()], variables))).toMatchObject({ code: 0 });
    expect(await done(slotkeeper(["exec", "--host", "h", "--", "true"], variables))).toMatchObject({ code: 0 });
    const elsewhere = await done(slotkeeper(["status", "--url", "http://127.0.0.1:9"], variables));
    expect(elsewhere).toMatchObject({ code: 7, err: expect.stringContaining("127.0.0.1:9") });
  });

  test("the shared key comes from a flag or the environment; without it the service refuses the call", async () => {
    const key = "a-shared-key-of-some-length";
    const url = await serve({ SLOTKEEPER_AUTH__ENABLED: "true", SLOTKEEPER_AUTH__TOKEN: key });
    const ask = ["acquire", "--url", url, "--host", "example.com"];
    const keyless = /status 401: The shared key is missing or wrong\. Set SLOTKEEPER_TOKEN or pass --token\.\n$/;
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
    const nowhere = ["--url", await deserted()];
    const all = [
      slotkeeper(["acquire", ...nowhere, "--host", "h", "--timeout", "0.2"]),
      slotkeeper(["release", "token", ...nowhere]),
      slotkeeper(["status", ...nowhere]),
      slotkeeper(["top", ...nowhere]),
    ];
    for (const command of all) {
      const { code, err } = await done(command);
      expect([code, err]).toEqual([7, `The service at ${nowhere[1]} is unavailable: nothing listens there.\n`]);
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
      err: expect.stringMatching(/^TOKEN is empty/),
    });
    expect(await done(slotkeeper(["release", "a", "b"]))).toMatchObject({
      code: 2,
      err: expect.stringMatching(/^Expected TOKEN, got "a" "b"\./),
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
      err: expect.stringMatching(/^Expected TOKEN, got no argument\./),
    });
    expect(await done(slotkeeper(["acquire", "--host", "h", "--url", "nonsense"]))).toMatchObject({ code: 2 });
    expect(await done(slotkeeper(["exec", "--host", "h", "--url", "http://127.0.0.1:1"]))).toMatchObject({
      code: 2,
      err: expect.stringContaining("Expected `--` and a command, for example: slotkeeper exec"),
    });
  });

  test.each([
    [["serve", "--port", "80"], "Unknown flag `--port`: did you mean `--listen`?\nKnown flags: --listen, "],
    [["serve", "--zebra"], "Unknown flag `--zebra`.\nKnown flags: "],
    [["top", "--token", "x"], "Unknown flag `--token`: did you mean `--internal-token`?"],
    [
      ["status", "--hots=x", "-q"],
      "Unknown flag `--hots`: did you mean `--host`?\nUnknown flag `-q`.\nKnown flags: --host, ",
    ],
    [["exec", "--tmeout", "3", "--", "ls", "--all"], "Unknown flag `--tmeout`: did you mean `--timeout`?"],
    [["stauts"], "Unknown command `stauts`. There are: status, "],
  ])("%j names what was probably meant, and all that is known", async (args, text) => {
    const { code, out, err } = await done(slotkeeper(args));
    expect([code, out, err.slice(0, text.length)]).toEqual([2, "", text]);
  });
});

describe("exec", () => {
  const exec = (url: string, ...command: string[]) =>
    slotkeeper(["exec", "--url", url, "--host", "jobs", "--max", "1", "--", ...command]);

  test("without -- it says where to put it", async () => {
    const { code, err } = await done(slotkeeper(["exec", "--host", "jobs", "--max", "2", "curl", "-v", "it's"]));
    expect([code, err.split("\n")[0]]).toEqual([
      2,
      "Expected `--` before the command: slotkeeper exec --host jobs --max 2 -- curl -v 'it'\\''s'",
    ]);
  });

  test("the command gets the name and the fence of its slot, and the keys of the service only with --pass-token", async () => {
    const keys = {
      SLOTKEEPER_TOKEN: "k1",
      SLOTKEEPER_AUTH__TOKEN: "k2",
      SLOTKEEPER_AUTH__TOKENS: "k3",
      SLOTKEEPER_INTERNAL_TOKEN: "k4",
      SLOTKEEPER_INTERNAL_API_TOKEN: "k5",
    };
    const variables = { ...keys, SLOTKEEPER_URL: await serve() };
    const printed = "console.log(JSON.stringify(process.env))";
    const run = async (...flags: string[]) => {
      const args = ["exec", "--host", "jobs", ...flags, "--", process.execPath, "-e", printed];
      const environment = JSON.parse((await done(slotkeeper(args, variables))).out) as Record<string, string>;
      return Object.fromEntries(Object.entries(environment).filter(([name]) => name.startsWith("SLOTKEEPER_")));
    };
    const own = {
      SLOTKEEPER_URL: variables.SLOTKEEPER_URL,
      SLOTKEEPER_NAME: "jobs",
      SLOTKEEPER_FENCE: expect.stringMatching(/^\d+$/) as string,
    };
    expect(await run()).toEqual(own);
    expect(await run("--pass-token")).toEqual({ ...own, ...keys });
  });

  test("on a terminal it shows what it waits for, and erases that when the command starts", async () => {
    const url = await serve();
    const holder = exec(url, process.execPath, "-e", "console.log('runs'); setInterval(() => {}, 1000)");
    await holder.said(/runs/);
    const args = ["exec", "--url", url, "--host", "jobs", "--max", "1", "--", "echo", "started"];
    const waiting = new TerminalSession(args);
    const line = /^waiting for "jobs": 1 of 1 in use, place 1 of 1 \(longest hold [\d.]+ m?s\)$/;
    await expect.poll(() => waiting.lines[0], { timeout: 15_000 }).toMatch(line);
    holder.kill("SIGTERM");
    expect(await waiting.exited).toBe(0);
    await expect.poll(() => waiting.text.trim()).toBe("started");
  });

  test("--quiet shows nothing on a terminal", async () => {
    const url = await answering({ result: "pending", queryToken: "q", position: 1, waiters: 1 });
    const args = ["exec", "--url", url, "--host", "h", "--timeout", "0.5", "--quiet", "--", "true"];
    const waiting = new TerminalSession(args);
    expect(await waiting.exited).toBe(6);
    await expect.poll(() => waiting.text.trim()).toMatch(/^Waited [\d.]+ m?s for a slot of "h": place 1 of 1\.$/);
  });

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
    for (const command of ["no-such-command", "/no/such/command", import.meta.filename, import.meta.dirname]) {
      expect(await done(exec(url, command))).toMatchObject({ code: 127, out: "", err: cannotStart(command) });
    }
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
