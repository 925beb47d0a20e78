import { describe, expect, it } from "vitest";
import { type Reply, startFixture } from "./service-fixture.ts";

/** The tokens refill so slowly that the numbers do not depend on the speed of the machine. */
const BUDGETS = {
  requests: { limit: 5, perSeconds: 0.5 },
  tokens: { limit: 1000, perSeconds: 10_000, burst: 500, default: 10 },
};
const SHADOW = { limit: 1, perSeconds: 1, shadow: true };
const limited = (hosts: object) => startFixture({ config: { fairQueue: { maxSlotPerIp: -1, hosts } } });
const HOST = { "example.com": { maxSlotPerHost: 20, budgets: { ...BUDGETS, tried: SHADOW } } };

function quotas({ headers }: Reply): { policy: string | null; left: string | null } {
  return { policy: headers.get("ratelimit-policy"), left: headers.get("ratelimit") };
}

/** `"tokens";r=41200;t=12` → [41200, 12]. */
function leftOf(reply: Reply, name: string): number[] {
  const [, r, t] = new RegExp(`"${name}";r=(\\d+)(?:;t=(\\d+))?(?:,|$)`).exec(quotas(reply).left ?? "") ?? [];
  return [r, t].filter((value) => value !== undefined).map(Number);
}

describe("the headers RateLimit-Policy and RateLimit of acquire", () => {
  it("say how many slots a host has and how many are free, with a grant and while a call waits", async () => {
    const fixture = await limited({
      "example.com": { maxSlotPerHost: 2, budgets: { a: { limit: 9, perSeconds: 1 } } },
    });
    const ask = () => fixture.acquire({ waitMs: 1, cost: { a: 0 } });
    const policy = '"slots";q=2;qu="concurrent-requests", "a";q=9;w=1';
    expect(quotas(await ask())).toEqual({ policy, left: '"slots";r=1, "a";r=9;t=0' });
    expect(quotas(await ask())).toEqual({ policy, left: '"slots";r=0, "a";r=9;t=0' });
    const waiting = await ask();
    expect(waiting.body.result).toBe("pending");
    expect(quotas(waiting)).toEqual({ policy, left: '"slots";r=0, "a";r=9;t=0' });
  });

  it("say what is left of each budget that is enforced, and when it is full again, in whole numbers", async () => {
    const fixture = await limited(HOST);
    const reply = await fixture.acquire({ waitMs: 1, cost: { tokens: 100.5 } });
    expect(quotas(reply).policy).toBe(
      '"slots";q=20;qu="concurrent-requests", "requests";q=10;w=1, "tokens";q=1000;w=10000',
    );
    expect(leftOf(reply, "slots")).toEqual([19]);
    expect(leftOf(reply, "tokens")).toEqual([399, 1005]);
  });

  it.each([
    [{ limit: 60, perSeconds: 60 }, "q=60;w=60"],
    [{ limit: 0.5, perSeconds: 1, burst: 10 }, "q=1;w=2"],
    [{ limit: 1.5, perSeconds: 2.5 }, "q=3;w=5"],
    [{ limit: 1, perSeconds: 1.4 }, "q=5;w=7"],
    [{ limit: 0.3, perSeconds: 0.1, burst: 1 }, "q=3;w=1"],
    [{ limit: 1e-6, perSeconds: 1, burst: 1 }, "q=1;w=1000000"],
    [{ limit: 1e12, perSeconds: 0.001 }, "q=999999999999999;w=1"],
    [{ limit: 1234.5, perSeconds: 1 }, "q=1234;w=1"],
  ])("name the window in which the quota of %j is whole: %s", async (budget, quota) => {
    const fixture = await limited({ "example.com": { budgets: { a: budget } } });
    const reply = await fixture.acquire({ waitMs: 1, cost: { a: 0 } });
    expect(quotas(reply).policy).toContain(`"a";${quota}`);
  });

  it("never name a rate that is above the budget's, or more than 1 % below it", async () => {
    const rates = Array.from({ length: 16 }, (_, at) => ({
      limit: Math.PI ** (at - 8),
      perSeconds: Math.E ** (at % 5),
    }));
    const budgets = Object.fromEntries(rates.map((rate, at) => [`b${at}`, { ...rate, burst: 1e6 }]));
    const { policy } = quotas(await (await limited({ "example.com": { budgets } })).acquire({ waitMs: 1 }));
    for (const [at, { limit, perSeconds }] of rates.entries()) {
      const [, q, w] = new RegExp(`"b${at}";q=(\\d+);w=(\\d+)`).exec(policy ?? "") ?? [];
      const ratio = Number(q) / Number(w) / (limit / perSeconds);
      expect([at, ratio > 0.99, ratio < 1 + 1e-8]).toEqual([at, true, true]);
    }
  });

  it("show a debt as nothing left", async () => {
    const fixture = await limited(HOST);
    const { slotToken } = await fixture.take({ cost: { tokens: 500 } });
    await fixture.release(slotToken, { used: { tokens: 700 } });
    const [r, t = 0] = leftOf(await fixture.acquire({ waitMs: 1 }), "tokens");
    expect(r).toBe(0);
    expect(t).toBeGreaterThan(6_900);
  });

  it("are missing at a host without budgets, from an answer that ends a session, and from other calls", async () => {
    const fixture = await limited(HOST);
    const { slotToken, queryToken } = await fixture.take();
    const released = await fixture.release(slotToken);
    const ended = await fixture.poll(queryToken);
    expect(ended.body.result).toBe("timeout");
    const plain = await (await startFixture()).acquire({ waitMs: 1 });
    for (const reply of [released, ended, plain]) expect(quotas(reply)).toEqual({ policy: null, left: null });
  });
});

describe("the header Prefer of a first call", () => {
  const ask = async (prefer: string, more: object = {}) => {
    const fixture = await startFixture();
    const { body, headers } = await fixture.acquire({ bucket: "b", ...more }, { headers: { prefer } });
    return [body.result, headers.get("preference-applied")];
  };

  it.each([
    "wait=5",
    "respond-async, wait=5",
    'wait = "5"',
    "WAIT=5; x=1, return=minimal",
    'foo="a, wait=3", wait=5',
    'foo="a\\", wait=3", wait=5',
  ])("%s waits like waitMs, and the answer says so", async (prefer) =>
    expect(await ask(prefer)).toEqual(["granted", "wait=5"]),
  );

  it.each([
    "wait",
    "wait=",
    "wait=-1",
    "wait=1.5",
    "wait=soon",
    "nowait=5",
    "respond-async",
    "wait=9999999999",
    'a="b, wait=5", c',
    'a="b, wait=5',
    'a="wait=5"',
  ])("%s is ignored", async (prefer) => expect(await ask(prefer)).toEqual(["pending", null]));

  it("does not change the waitMs of the body", async () => {
    expect(await ask("wait=5", { waitMs: 0 })).toEqual(["pending", null]);
    expect(await ask("wait=0", { waitMs: 5_000 })).toEqual(["granted", null]);
  });

  it("is allowed from web pages, which may read what was applied and what is left", async () => {
    const origin = "https://app.example";
    const fixture = await startFixture({ config: { cors: { origins: [origin] } } });
    const preflight = await fetch(`${fixture.url}/api/v0/fairqueue/acquire`, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST" },
    });
    expect(preflight.headers.get("access-control-allow-headers")).toContain("Prefer");
    const { headers } = await fixture.acquire({}, { headers: { origin } });
    expect(headers.get("access-control-expose-headers")).toMatch(/RateLimit, RateLimit-Policy, Preference-Applied/);
  });
});
