// The commands for operators against a real service, as processes.
import { describe, expect, test } from "vitest";
import { type Command, slotkeeper } from "./command.ts";
import { TerminalSession } from "./terminal.ts";

interface Service {
  readonly url: string;
  /** The audit records of the log. */
  readonly audited: () => { readonly [field: string]: unknown }[];
  readonly run: (...args: string[]) => Promise<{ code: unknown; out: string; err: string }>;
}

async function serve(environment: Record<string, string> = {}): Promise<Service> {
  const service = slotkeeper(["serve", "--listen", "127.0.0.1:0", "--json"], environment);
  const [, url = ""] = await service.said(/"url":"(http:[^"]+)"/);
  return {
    url,
    audited: () => audits(service),
    run: async (...args) => {
      const command = slotkeeper([...args, "--url", url]);
      const code = await command.exited;
      return { code, out: command.out, err: command.err };
    },
  };
}

function audits({ err }: Command): { readonly [field: string]: unknown }[] {
  const lines = err.split("\n").filter((line) => line.includes('"msg":"audit: '));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

const HOST = "api.example.com";

async function hold({ run }: Service, ...more: string[]): Promise<{ slotToken: string; fence: number }> {
  return JSON.parse((await run("acquire", "--host", HOST, "--json", ...more)).out) as never;
}

async function limits({ url }: Service): Promise<unknown> {
  const { hosts } = (await (await fetch(`${url}/api/v0/state?host=${HOST}`)).json()) as {
    hosts: { limits: unknown }[];
  };
  return hosts[0]?.limits;
}

describe("limit", () => {
  test("sets one limit and keeps the other, and --reset returns to the configuration", async () => {
    const service = await serve();
    await hold(service);
    expect(await service.run("limit", HOST, "--slots", "20", "--yes")).toEqual({
      code: 0,
      out: '"api.example.com" has 20 slots (live), 1 per bucket (default).\n',
      err: "",
    });
    const second = await service.run("limit", HOST, "--per-bucket", "0", "--yes", "--json");
    const live = { maxSlotPerHost: { value: 20, origin: "live" }, maxSlotPerIp: { value: 0, origin: "live" } };
    expect(JSON.parse(second.out)).toEqual({ host: HOST, limits: live });
    expect(await limits(service)).toEqual(live);
    const reset = await service.run("limit", HOST, "--slots", "7", "--reset", "--yes");
    expect(reset.out).toBe('"api.example.com" has 7 slots (live), 1 per bucket (default).\n');
    expect(service.audited()).toMatchObject([
      { msg: "audit: limits", limits: { maxSlotPerHost: 20 }, outcome: "done" },
      { msg: "audit: limits", limits: { maxSlotPerHost: 20, maxSlotPerIp: 0 }, outcome: "done" },
      { msg: "audit: limits", limits: { maxSlotPerHost: 7 }, outcome: "done" },
    ]);
  });

  test("an unknown host is refused with the nearest name, and --new accepts it", async () => {
    const service = await serve();
    await hold(service);
    const wrong = await service.run("limit", "apy.example.com", "--slots", "2", "--yes");
    expect(wrong).toMatchObject({ code: 8, err: expect.stringContaining("Did you mean `api.example.com`?") });
    expect(wrong.err).toContain("--new");
    expect(await service.run("limit", "apy.example.com", "--slots", "2", "--yes", "--new")).toMatchObject({ code: 0 });
  });

  test("a value that the service refuses is named with what it expected", async () => {
    const service = await serve();
    const { code, err } = await service.run("limit", HOST, "--slots", "9999999999", "--yes");
    expect(code).toBe(8);
    expect(err).toContain("Expected `maxSlotPerHost` to be at most 1000000, got 9999999999.");
  });
});

describe("revoke", () => {
  test("takes away the slot with this fence; a fence that is not held is refused with those that are", async () => {
    const service = await serve();
    const { slotToken, fence } = await hold(service, "--bucket", "me");
    const wrong = await service.run("revoke", HOST, "7", "--yes");
    expect(wrong).toMatchObject({
      code: 8,
      err: `No slot of "api.example.com" has the fence 7: held are ${fence}.\n`,
    });
    const revoked = await service.run("revoke", HOST, String(fence), "--yes", "--json");
    expect(JSON.parse(revoked.out)).toEqual({ host: HOST, fence, bucket: "me" });
    expect(await service.run("release", slotToken)).toMatchObject({ code: 1 });
    expect(service.audited()).toMatchObject([{ msg: "audit: revoke", outcome: "done" }]);
  });
});

describe("breaker", () => {
  test("open refuses callers, close lets them pass, and both are audited", async () => {
    const service = await serve();
    await hold(service, "--bucket", "a");
    const opened = await service.run("breaker", HOST, "open", "--yes");
    expect(opened).toEqual({ code: 0, out: 'The breaker of "api.example.com" is open.\n', err: "" });
    expect(await service.run("acquire", "--host", HOST, "--bucket", "b")).toMatchObject({ code: 6 });
    const closed = await service.run("breaker", HOST, "close", "--yes", "--json");
    expect(JSON.parse(closed.out)).toEqual({ host: HOST, breaker: "closed" });
    expect(await service.run("acquire", "--host", HOST, "--bucket", "b")).toMatchObject({ code: 0 });
    expect(service.audited()).toMatchObject([{ state: "open" }, { state: "closed" }]);
  });
});

describe("pause and resume", () => {
  test("grant nothing new until the host goes on, and both are audited", async () => {
    const service = await serve();
    const { slotToken } = await hold(service, "--bucket", "a");
    const paused = await service.run("pause", HOST, "--yes");
    expect(paused).toEqual({ code: 0, out: '"api.example.com" is paused: nothing new is granted.\n', err: "" });
    const refused = await service.run("acquire", "--host", HOST, "--bucket", "b", "--timeout", "0.2");
    expect(refused).toMatchObject({ code: 6, err: expect.stringContaining("host paused") });
    expect((await service.run("who", HOST)).out).toContain("breaker closed, paused: nothing new is granted");
    expect((await service.run("status")).out).toMatch(/1\/5 paused/);
    expect(await service.run("release", slotToken)).toMatchObject({ code: 0 });
    const resumed = await service.run("resume", HOST, "--yes", "--json");
    expect(JSON.parse(resumed.out)).toEqual({ host: HOST, paused: false });
    expect(await service.run("acquire", "--host", HOST, "--bucket", "b")).toMatchObject({ code: 0 });
    expect(service.audited()).toMatchObject([{ paused: true }, { paused: false }]);
  });
});

describe("who", () => {
  test("shows holders, waiters, and why the first one waits", async () => {
    const service = await serve();
    const { fence } = await hold(service, "--bucket", "me");
    const waiting = slotkeeper(["acquire", "--host", HOST, "--bucket", "me", "--url", service.url]);
    await expect.poll(async () => (await service.run("who", HOST)).out, { timeout: 20_000 }).toMatch(/1 waiting/);
    const { out } = await service.run("who", HOST);
    const lines = out.split("\n");
    expect(lines[0]).toBe("api.example.com: 1 of 5 slots in use (default), 1 per bucket, 1 waiting, breaker closed");
    expect(lines[3]).toMatch(new RegExp(`^${fence} {2}me +\\S+ m?s +\\d+ s$`));
    expect(lines[6]).toMatch(/^1 +me +\S+ m?s +\S+.* bucket at its limit$/);
    expect(lines[8]).toMatch(
      /^Why the first one waits: Its bucket “me” already has 1 slot; the limit per bucket is 1\. /,
    );
    const json = await service.run("who", HOST, "--json");
    expect(JSON.parse(json.out)).toMatchObject({
      hostname: HOST,
      slots: [{ bucket: "me" }],
      sessions: [{ position: 1 }],
    });
    waiting.kill("SIGTERM");
    await waiting.exited;
  });

  test("names the budget that the first one waits for, and shows what is left of it", async () => {
    const budgets = { tokens: { limit: 1_000, perSeconds: 10_000_000, burst: 500 } };
    const service = await serve({ SLOTKEEPER_FAIR_QUEUE__HOSTS: JSON.stringify({ [HOST]: { budgets } }) });
    await hold(service, "--cost", "tokens=400");
    const waiting = slotkeeper(["acquire", "--host", HOST, "--cost", "tokens=200", "--url", service.url]);
    await expect.poll(async () => (await service.run("who", HOST)).out, { timeout: 20_000 }).toMatch(/tokens used up/);
    const { out } = await service.run("who", HOST);
    const lines = out.split("\n");
    expect(lines[2]).toMatch(/^BUDGET +LEFT +REFILL +FULL IN$/);
    expect(lines[3]).toMatch(/^tokens {2}████░{16} {2}100 of 500 {2}1,000 per 10,000,000 s {2}\d+ h \d+ min$/);
    expect(out).toContain(
      "Why the first one waits: It costs 200 of the budget “tokens”, and 100 are left. The budget refills by 1,000 per ",
    );
    waiting.kill("SIGTERM");
    await waiting.exited;
  });

  test("shows the classes of the host with their limits, and the class of each holder", async () => {
    const limits = {
      maxSlotPerHost: 4,
      maxSlotPerIp: -1,
      classes: { chat: { weight: 4, floor: 2 }, batch: { ceiling: 2 } },
    };
    const service = await serve({ SLOTKEEPER_FAIR_QUEUE__HOSTS: JSON.stringify({ [HOST]: limits }) });
    await hold(service, "--class", "chat", "--width", "2");
    await hold(service, "--class", "batch");
    const { out } = await service.run("who", HOST);
    const lines = out.split("\n");
    expect(lines.slice(2, 6)).toEqual([
      expect.stringMatching(/^CLASS +IN USE {2}WEIGHT {2}FLOOR {2}CEILING {2}SHARE {2}WAITING$/),
      expect.stringMatching(/^batch {4}█{10}░{10} {2}1 +1 +- +2 +\S+ +0$/),
      expect.stringMatching(/^chat {5}█{10}░{10} {2}2 +4 +2 +- +\S+ +0$/),
      expect.stringMatching(/^default {2}░{20} {2}0 +1 +- +- +\S+ +0$/),
    ]);
    expect(out).toMatch(/^\d+ +\S.* \(chat, 2 slots\) /m);
    expect(out).toMatch(/^\d+ +\S.* \(batch\) /m);
    const wide = ["--class", "batch", "--width", "2", "--url", service.url];
    const waiting = slotkeeper(["acquire", "--host", HOST, ...wide]);
    await expect
      .poll(async () => (await service.run("who", HOST)).out, { timeout: 20_000 })
      .toContain("Why the first one waits: It needs 2 slots, and its class “batch” has 1 of 2 that it may have.");
    waiting.kill("SIGTERM");
    await waiting.exited;
  });

  test("a host that no caller has used is named", async () => {
    const service = await serve();
    expect(await service.run("who", "nosuch.example")).toEqual({
      code: 8,
      out: "",
      err: 'The service knows no host "nosuch.example": no caller has used it lately.\n',
    });
  });
});

describe("what all of them have", () => {
  test("without a terminal they need --yes, and change nothing", async () => {
    const service = await serve();
    const { fence } = await hold(service);
    for (const args of [
      ["limit", HOST, "--slots", "2"],
      ["revoke", HOST, String(fence)],
      ["breaker", HOST, "open"],
      ["pause", HOST],
    ]) {
      expect(await service.run(...args)).toEqual({
        code: 2,
        out: "",
        err: "Expected --yes: there is no terminal to ask on.\n",
      });
    }
    expect(service.audited()).toEqual([]);
  });

  test.each([
    ["y\r", 0, "is open."],
    ["\r", 1, "Nothing was changed."],
    // Ctrl+D: the end of the input.
    ["\u0004", 1, "Nothing was changed."],
  ])("on a terminal they ask first: %j", async (typed, code, shown) => {
    const service = await serve();
    await hold(service);
    const session = new TerminalSession(["breaker", HOST, "open", "--url", service.url]);
    const question = 'Open the breaker of "api.example.com"? New and waiting sessions end. [y/N]';
    await expect.poll(() => session.text, { timeout: 15_000 }).toContain(question);
    session.press(typed);
    expect(await session.exited).toBe(code);
    expect(session.text).toContain(shown);
    expect(service.audited().length).toBe(code === 0 ? 1 : 0);
  });

  test.each([
    [["limit", HOST], "Expected --slots, --per-bucket or --reset."],
    [["limit", HOST, "--slots", "0"], 'Expected --slots to be a whole number of at least 1, got "0".'],
    [["limit", HOST, "--per-bucket", "x"], 'Expected --per-bucket to be a whole number of at least 0, got "x".'],
    [["limit"], "Expected HOST, got no argument."],
    [["limit", "", "--slots", "2"], "HOST is empty: perhaps a variable is not set."],
    [["revoke", HOST], 'Expected HOST FENCE, got "api.example.com".'],
    [["revoke", HOST, "soon"], 'Expected FENCE to be a whole number of at least 1, got "soon".'],
    [["breaker", HOST, "half"], 'Expected STATE to be open or close, got "half".'],
    [["who", HOST, "x"], 'Expected HOST, got "api.example.com" "x".'],
    [
      ["limit", HOST, "--slots"],
      "Expected a value after --slots. A value that begins with a dash is written --slots=VALUE.",
    ],
    [
      ["limit", HOST, "--slots", "-3"],
      "Expected a value after --slots. A value that begins with a dash is written --slots=VALUE.",
    ],
    [["limit", HOST, "--slots=-3"], 'Expected --slots to be a whole number of at least 1, got "-3".'],
    [["limit", HOST, "--yes=no"], "--yes takes no value."],
    [["limit", HOST, "--slot", "2"], "Unknown flag `--slot`: did you mean `--slots`?"],
  ])("%j is exit code 2 and says what was expected", async (args, line) => {
    const command = slotkeeper(args);
    expect([await command.exited, command.out, command.err.split("\n")[0]]).toEqual([2, "", line]);
  });

  test("a missing internal token is refused with the name of the flag, and a wrong one is said to be wrong", async () => {
    const token = "an-internal-token-of-some-length";
    const { run } = await serve({ SLOTKEEPER_INTERNAL_API_TOKEN: token });
    for (const args of [
      ["who", HOST],
      ["breaker", HOST, "open", "--yes"],
    ]) {
      expect(await run(...args)).toMatchObject({ code: 8, err: expect.stringContaining("or pass --internal-token.") });
      const wrong = await run(...args, "--internal-token", "another-token-of-some-length");
      expect(wrong).toMatchObject({ code: 8, err: expect.stringContaining("is probably not its internalApiToken.") });
      expect(wrong.err).not.toContain("another-token");
    }
    expect(await run("breaker", HOST, "open", "--yes", "--internal-token", token)).toMatchObject({ code: 0 });
  });
});
