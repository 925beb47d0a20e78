import { describe, expect, it } from "vitest";
import { type Command, slotkeeper } from "./command.ts";
import { TerminalSession } from "./terminal.ts";

/** Another process draws: it may take a while on a busy machine. */
const seen = <T>(look: () => T) => expect.poll(look, { timeout: 15_000 });

const UP = "\u001b[A";
const DOWN = "\u001b[B";
const ESCAPE = "\u001b";

async function acquire(url: string, hostname: string, ipBucket: string, waitMs = 1): Promise<void> {
  const body = JSON.stringify({ hostname, ipBucket, waitMs });
  const response = await fetch(`${url}/api/v0/fairqueue/acquire`, { method: "POST", body });
  expect(response.status).toBe(200);
}

/** A service where `busy.example` has five holders and three waiters, and two others have one holder each. */
async function service(...more: string[]): Promise<{ url: string; command: Command }> {
  const command = slotkeeper(["serve", "--listen", "127.0.0.1:0", ...more]);
  const url = await command.url();
  for (let index = 0; index < 8; index++) await acquire(url, "busy.example", `bucket-${index}`);
  await acquire(url, "calm.example", "b");
  await acquire(url, "alone.example", "b");
  return { url, command };
}

const top = (url: string, ...more: string[]) =>
  new TerminalSession(["top", "--url", url, "--interval", "0.2", ...more]);

describe("top in a terminal", () => {
  it("shows the totals and the hosts, the longest queue first, and restores the screen at the end", async () => {
    const { url } = await service();
    const session = top(url);
    await seen(() => session.hosts).toEqual(["busy.example", "alone.example", "calm.example"]);
    expect(session.lines[1]).toMatch(/^7 of 15 slots in use {3}3 waiting/);
    expect(session.text).toMatch(/busy\.example +5 of 5 +3 .*closed/);
    expect(session.isOnAlternateScreen).toBe(true);
    session.press("q");
    expect(await session.exited).toBe(0);
    expect(session.isOnAlternateScreen).toBe(false);
  });

  it("sorts by another column, reverses, and searches", async () => {
    const { url } = await service();
    const session = top(url);
    await seen(() => session.hosts).toHaveLength(3);
    session.press("1");
    await seen(() => session.hosts).toEqual(["alone.example", "busy.example", "calm.example"]);
    session.press("r");
    await seen(() => session.hosts).toEqual(["calm.example", "busy.example", "alone.example"]);
    expect(session.text).toContain("HOST↑");
    session.press("s");
    await seen(() => session.text).toContain("IN USE↓");
    session.press("/cal\r");
    await seen(() => session.hosts).toEqual(["calm.example"]);
    session.press(ESCAPE);
    await seen(() => session.hosts).toHaveLength(3);
  });

  it("opens the host under the cursor with its holders, its waiters and what they wait for; Esc goes back", async () => {
    const { url } = await service();
    const session = top(url);
    await seen(() => session.hosts).toHaveLength(3);
    session.press(DOWN + UP);
    session.press("\r");
    await seen(() => session.text).toContain("SLOT HELD BY");
    expect(session.lines.filter((line) => /^bucket-[0-4] +\d.* ms|^bucket-[0-4] +[\d.]+ s/.test(line))).toHaveLength(5);
    await seen(() => session.text).toMatch(/1 {2}bucket-5 .*(?:all slots in use|client is away)/);
    session.press(ESCAPE);
    await seen(() => session.hosts).toHaveLength(3);
  });

  it("shows the classes of an open host with their limits", async () => {
    const classes = { chat: { weight: 4, floor: 2 }, batch: { ceiling: 2 } };
    const command = slotkeeper(["serve", "--listen", "127.0.0.1:0"], {
      SLOTKEEPER_FAIR_QUEUE__HOSTS: JSON.stringify({ "busy.example": { maxSlotPerIp: -1, classes } }),
    });
    const url = await command.url();
    slotkeeper(["acquire", "--host", "busy.example", "--class", "batch", "--url", url]);
    const session = top(url);
    await seen(() => session.hosts).toHaveLength(1);
    session.press("\r");
    await seen(() => session.text).toMatch(/^batch {4}█{10}░{10} {2}1 +1 +- +2 +\S+ +0$/m);
    expect(session.text).toMatch(/^CLASS +IN USE {2}WEIGHT {2}FLOOR {2}CEILING {2}SHARE {2}WAITING$/m);
    expect(session.text).toMatch(/^\(no bucket\) \(batch\) /m);
  });

  it("shows the budgets of an open host as bars, and the budget that its first waiter waits for", async () => {
    const budgets = { tokens: { limit: 1_000, perSeconds: 10_000_000, burst: 500, default: 0 } };
    const hosts = { "busy.example": { maxSlotPerIp: -1, budgets } };
    const command = slotkeeper(["serve", "--listen", "127.0.0.1:0"], {
      SLOTKEEPER_FAIR_QUEUE__HOSTS: JSON.stringify(hosts),
    });
    const url = await command.url();
    for (const tokens of ["400", "200"]) {
      const cost = ["--cost", `tokens=${tokens}`];
      slotkeeper(["acquire", "--host", "busy.example", ...cost, "--timeout", "60", "--url", url]);
    }
    const session = top(url);
    await seen(() => session.hosts).toHaveLength(1);
    session.press("\r");
    await seen(() => session.text).toMatch(/tokens used up/);
    expect(session.text).toMatch(/^BUDGET +LEFT +REFILL +FULL IN$/m);
    expect(session.text).toMatch(/^tokens {2}█{4,12}░{8,16} {2}[13]00 of 500 {2}1,000 per 10,000,000 s/m);
    expect(session.text).toContain("SLOT HELD BY");
  });

  it("shows the busiest keys of an open host, with their slots as bars, their waiters and budgets", async () => {
    const tenant = { slots: 1, budgets: { tokens: { limit: 60, perSeconds: 10_000_000, default: 20 } } };
    const hosts = { "busy.example": { maxSlotPerIp: -1, keys: { tenant } } };
    const command = slotkeeper(["serve", "--listen", "127.0.0.1:0"], {
      SLOTKEEPER_FAIR_QUEUE__HOSTS: JSON.stringify(hosts),
    });
    const url = await command.url();
    for (let count = 0; count < 2; count++)
      slotkeeper(["acquire", "--host", "busy.example", "--key", "tenant=acme", "--timeout", "60", "--url", url]);
    const session = top(url);
    await seen(() => session.hosts).toHaveLength(1);
    session.press("\r");
    await seen(() => session.text).toMatch(/^KEY +SLOTS +WAITING +LEFT$/m);
    await seen(() => session.text).toMatch(/^tenant acme {2}█{10} {2}1 of 1 +1 +tokens 40 of 60$/m);
  });

  it("follows a resize: fewer columns, shorter names, and no wrapped line", async () => {
    const { url } = await service();
    const session = top(url);
    await seen(() => session.hosts).toHaveLength(3);
    session.resize(46, 10);
    await seen(() => session.text).not.toContain("BREAKER");
    await seen(() => session.lines[4] ?? "").toMatch(/^busy\.example +5 of 5 +3$/);
    expect(session.lines.at(-1)).toMatch(/choose/);
    session.resize(140, 30);
    await seen(() => session.text).toContain("BREAKER");
    expect(session.lines).toHaveLength(30);
  });

  it("shows a host with an open breaker first, and that it is open, at any width", async () => {
    const { url } = await service();
    const init = { method: "POST", body: JSON.stringify({ state: "open" }) };
    expect((await fetch(`${url}/api/v0/hosts/calm.example/breaker`, init)).status).toBe(204);
    const session = top(url);
    await seen(() => session.hosts).toEqual(["calm.example", "busy.example", "alone.example"]);
    expect(session.lines[4]).toMatch(/^calm\.example +1 of 5 .* open \d+ s$/);
    session.resize(60, 10);
    await seen(() => session.lines[4] ?? "").toMatch(/^calm\.example +1 of 5 +0 {2}open \d+ s$/);
    session.resize(46, 10);
    await seen(() => session.lines[4] ?? "").toMatch(/^calm\.example +breaker open +0$/);
  });

  it("survives a restart of the service, and meanwhile shows that its data is old", async () => {
    const { url, command } = await service();
    const session = top(url);
    await seen(() => session.hosts).toHaveLength(3);
    command.kill("SIGKILL");
    await command.exited;
    await seen(() => session.text).toContain("No connection to the service");
    expect(session.hosts).toHaveLength(3);
    const again = slotkeeper(["serve", "--listen", new URL(url).host]);
    await again.url();
    await acquire(url, "later.example", "b");
    await seen(() => session.hosts).toEqual(["later.example"]);
    expect(session.text).not.toContain("No connection");
  });

  it("shows a hostile name harmlessly, in exactly its columns", async () => {
    const command = slotkeeper(["serve", "--listen", "127.0.0.1:0"]);
    const url = await command.url();
    await acquire(url, "<b>\u202egnp.example", "\u2066x");
    await acquire(url, "広".repeat(255), "b");
    const session = top(url);
    await seen(() => session.text).toContain("<b>\\u{202e}gnp.example");
    const wide = session.lines.find((line) => line.startsWith("広"));
    expect(wide).toMatch(/…\s+1 of 5 +0 .*closed$/);
    expect(session.lines.filter((line) => line !== "")).toHaveLength(6);
  });

  it.each([
    ["Ctrl-C", (session: TerminalSession) => session.press("\u0003"), 0],
    ["SIGTERM", (session: TerminalSession) => session.kill("SIGTERM"), 143],
  ])("restores the screen after %s, too", async (_, stop, code) => {
    const { url } = await service();
    const session = top(url);
    await seen(() => session.hosts).toHaveLength(3);
    stop(session);
    expect(await session.exited).toBe(code);
    expect(session.isOnAlternateScreen).toBe(false);
  });
});

describe("top without a terminal", () => {
  it("prints the table once, without any control character, and exits 0", async () => {
    const { url } = await service();
    const command = slotkeeper(["top", "--url", url]);
    expect(await command.exited).toBe(0);
    expect(command.out).toMatch(/^7 of 15 slots in use/);
    expect(command.out).toMatch(/\nbusy\.example +5 of 5 +3 /);
    expect(command.out).not.toMatch(/[^\P{Cc}\n]/u);
  });

  it("prints the state as JSON with --json", async () => {
    const { url } = await service();
    const command = slotkeeper(["top", "--url", url, "--json"]);
    expect(await command.exited).toBe(0);
    const { hosts, history } = JSON.parse(command.out) as { hosts: { hostname: string }[]; history: object };
    expect(hosts.map(({ hostname }) => hostname).sort()).toEqual(["alone.example", "busy.example", "calm.example"]);
    expect(history).toMatchObject({ stepMs: 5000 });
  });

  it("needs the internal token if one is set, reads it from the environment, and says so", async () => {
    const secret = "an-internal-token-of-some-length";
    const environment = { SLOTKEEPER_INTERNAL_API_TOKEN: secret };
    const url = await slotkeeper(["serve", "--listen", "127.0.0.1:0"], environment).url();
    const without = slotkeeper(["top", "--url", url]);
    expect(await without.exited).toBe(8);
    expect(without.err).toContain("--internal-token");
    expect(await slotkeeper(["top", "--url", url, "--json"], environment).exited).toBe(0);
  });

  it.each([
    [["--url", "ftp://x"], /--url/],
    [["--url", "http://u:pw@127.0.0.1:9"], /--url(?!.*pw)/s],
    [["--internal-token", "a\nb"], /--internal-token(?!.*a\nb)/s],
    [["--interval", "0"], /--interval/],
    [["--colour"], /--colour/],
  ])("%j exits 2", async (args, text) => {
    const command = slotkeeper(["top", ...args]);
    expect(await command.exited).toBe(2);
    expect(command.err).toMatch(text);
  });

  it("reports that nothing answers, and exits 7", async () => {
    const command = slotkeeper(["top", "--url", "http://127.0.0.1:9"]);
    expect(await command.exited).toBe(7);
    expect(command.err).toContain("The service at http://127.0.0.1:9 is unavailable");
  });
});
