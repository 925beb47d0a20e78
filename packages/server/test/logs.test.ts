import { EventLog, type EventLogInit } from "@slotkeeper/server/internals";
import { describe, expect, it } from "vitest";
import { configFile, type Fixture, startFixture, stopFixture } from "./service-fixture.ts";

const SECRETS = {
  shared: "shared-key-0123456789",
  sharedNext: 'shared-"key"-with-\\quotes',
  signing: "signing-key-0123456789",
  bearer: "internal-bearer-0123456789",
};

/** Makes every kind of call to a service, with secrets in all the wrong places, too. Returns all its output. */
async function everything(fixture: Fixture): Promise<string[]> {
  const key = { headers: { "X-FQ-Auth": SECRETS.shared } };
  const bearer = { headers: { authorization: `Bearer ${SECRETS.bearer}` } };
  const call = (name: string, body: unknown, headers = {}) =>
    fixture.call(name, body, { headers: { ...key.headers, ...headers } });
  const slot = (await call("acquire", { hostname: "h", ipBucket: "a", waitMs: 1000 })).body;
  const pending = (await call("acquire", { hostname: "h", ipBucket: "a", requestId: "r" })).body;
  const tokens = [slot.slotToken, slot.queryToken, pending.queryToken];
  await call("renew", { slotToken: slot.slotToken });
  await call("cancel", { queryToken: pending.queryToken });
  for (const token of [...tokens, ...Object.values(SECRETS)]) {
    const path = encodeURIComponent(token);
    await fixture.request("GET", `/${path}`);
    await fixture.request("GET", `/livez?token=${path}`);
    await fixture.request("GET", `/api/v0/slots/${token.replaceAll(/[^\w.-]/g, "")}`, {
      headers: { "x-request-id": token.replaceAll(/[^\w.-]/g, "").slice(0, 64) },
    });
    await fixture.request("POST", "/api/v0/fairqueue/release", { ...key, body: `{"slotToken":"${token}` });
    await call("acquire", { queryToken: `${token}x` });
    await call("acquire", { queryToken: [token] });
    await call("renew", { slotToken: `${token}x` });
    await fixture.call("acquire", { hostname: "h" }, { headers: { "X-FQ-Auth": `${encodeURIComponent(token)}x` } });
    await fixture.request("GET", "/api/v0/health", {
      headers: { authorization: `Bearer ${encodeURIComponent(token)}x` },
    });
  }
  await fixture.request("POST", "/api/v0/refresh", bearer);
  await fixture.request("POST", "/api/v0/flush", bearer);
  await fixture.request("GET", "/api/v0/state", bearer);
  await call("release", { slotToken: slot.slotToken, status: 200 });
  return tokens;
}

const linesOf = (fixture: Fixture, message: string) =>
  fixture.logged.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ msg }) => msg === message);

describe("the log", () => {
  it("contains no token and no key, at any level and for any call", async () => {
    const file = configFile({
      logLevel: "debug",
      auth: { enabled: true, tokens: [SECRETS.shared, SECRETS.sharedNext] },
      tokenKeys: [SECRETS.signing],
      internalApiToken: SECRETS.bearer,
    });
    const fixture = await startFixture({ file });
    const tokens = await everything(fixture);
    await stopFixture(fixture);
    const log = fixture.logged.join("");
    expect(log.split("\n").length).toBeGreaterThan(50);
    for (const secret of [...tokens, ...Object.values(SECRETS)]) {
      expect(log).not.toContain(secret);
      expect(log).not.toContain(JSON.stringify(secret).slice(1, -1));
      expect(log).not.toContain(encodeURIComponent(secret));
    }
    // Also not the part of a token that signs it, or that alone would identify a slot.
    for (const token of tokens) expect(log).not.toContain(token.split(/^slot_|\./).at(-1));
  });

  it("is one JSON object per line, with time, level, message and request id", async () => {
    const fixture = await startFixture({ config: { logLevel: "debug" } });
    await fixture.take();
    await stopFixture(fixture);
    const lines = fixture.logged.map((line) => JSON.parse(line) as Record<string, unknown>);
    for (const line of lines)
      expect(line).toMatchObject({ time: expect.any(String), level: expect.any(String), msg: expect.any(String) });
    const requests = lines.filter(({ msg }) => msg === "request");
    expect(requests.length).toBeGreaterThan(0);
    for (const request of requests) expect(request["requestId"]).toMatch(/^[\w-]{12}$/);
  });

  it("reports a bucket that is not considered at debug, and at info once per host and minute", async () => {
    const fixture = await startFixture({ config: { logLevel: "debug" } });
    for (const ipBucket of ["a", "b", "c"]) {
      await fixture.take({ ipBucket });
      await fixture.acquire({ ipBucket, waitMs: 50 });
      await fixture.acquire({ ipBucket, waitMs: 50 });
    }
    await fixture.take({ hostname: "other.example", ipBucket: "a" });
    await fixture.acquire({ hostname: "other.example", ipBucket: "a", waitMs: 50 });
    const decision = { ip: "a", allowed: false, reason: "ip_deny_window" };
    expect(linesOf(fixture, "probe decision")).toMatchObject([
      { level: "info", host: "example.com", ...decision, windows: 1 },
      { level: "debug", host: "example.com", ...decision, ip: "b" },
      { level: "debug", host: "example.com", ...decision, ip: "c" },
      { level: "info", host: "other.example", ...decision, windows: 1 },
    ]);
  });

  it("counts the windows since the last report of a host", () => {
    const lines: Record<string, unknown>[] = [];
    const log = {
      info: (_message: string, fields: Record<string, unknown>) => lines.push(fields),
      debug: () => {},
      isOn: () => false,
    } as unknown as EventLogInit["log"];
    let now = 0;
    const events = new EventLog({ log, nameOf: () => undefined, now: () => now });
    const deny = (bucket: string) =>
      events.add({ type: "probe-decision", host: "h", bucket, isAllowed: false, reason: "ip_deny_window" });
    for (let at = 0; at < 850; at++) deny(`b${at}`);
    now = 59_999;
    deny("x");
    now = 60_000;
    deny("y");
    expect(lines.map(({ ip, windows }) => [ip, windows])).toEqual([
      ["b0", 1],
      ["y", 851],
    ]);
  });

  it("names host, bucket and fence of a lease that expires without a release", async () => {
    const fairQueue = { maxSlotPerHost: 1, zombieTimeoutSeconds: 0.5, collectMs: 1 };
    const fixture = await startFixture({ config: { fairQueue } });
    const { fence } = await fixture.take({ bucket: "a" });
    // Answered when the first slot expires.
    await fixture.acquire({ bucket: "b", waitMs: 5_000 });
    expect(linesOf(fixture, "a lease expired without a release")[0]).toMatchObject({
      level: "info",
      host: "example.com",
      bucket: "a",
      fence,
    });
  });

  it("does not replace a short key in its own sentences, but removes it where a caller sent it", async () => {
    const token = "short";
    const fixture = await startFixture({ config: { auth: { enabled: true, token }, logLevel: "debug" } });
    await fixture.request("GET", `/a/${token}/b`);
    await fixture.request("GET", `/${token}er`);
    const log = fixture.logged.join("");
    expect(log).toContain("`auth.token` is shorter than 16 characters");
    expect(log).toContain('"path":"/a/[redacted]/b"');
    expect(log).toContain('"path":"/shorter"');
    expect(log).not.toMatch(/"[^"]*\bshort\b[^"]*"/);
  });

  it("warns of a service that is open to everyone, and only then", async () => {
    const isWarned = (fixture: Fixture) => fixture.logged.some((line) => line.includes("OPEN TO EVERYONE"));
    expect(isWarned(await startFixture({ config: { listen: ":0" } }))).toBe(true);
    expect(isWarned(await startFixture({ config: { listen: "0.0.0.0:0", auth: { enabled: true, token: "k" } } }))).toBe(
      false,
    );
    expect(isWarned(await startFixture())).toBe(false);
  });
});
