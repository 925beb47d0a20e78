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

  it("reports once per window, at info, that a bucket is not considered", async () => {
    const fixture = await startFixture();
    await fixture.take({ ipBucket: "a" });
    await fixture.acquire({ ipBucket: "a", waitMs: 50 });
    await fixture.acquire({ ipBucket: "a", waitMs: 50 });
    const warnings = fixture.logged
      .filter((line) => line.includes("probe decision"))
      .map((line) => JSON.parse(line) as object);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({
      level: "info",
      host: "example.com",
      ip: "a",
      allowed: false,
      reason: "ip_deny_window",
    });
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
