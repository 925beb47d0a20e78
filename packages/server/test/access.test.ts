import { get } from "node:http";
import { type ServiceState, waitCause } from "@slotkeeper/protocol";
import { describe, expect, it } from "vitest";
import { rawAnswer } from "./raw-connection.ts";
import { configFile, startFixture } from "./service-fixture.ts";

const KEYS = ["the-shared-key", "the-next-shared-key"];
const BEARER = "internal-token";
const auth = (token: string) => ({ headers: { "X-FQ-Auth": token } });
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

describe("the shared key", () => {
  it("is needed on every route for callers, and only there", async () => {
    const fixture = await startFixture({ config: { auth: { enabled: true, token: KEYS[0] } } });
    for (const name of ["acquire", "release", "renew", "cancel", "report"]) {
      for (const init of [{}, auth(""), auth("wrong"), auth(`${KEYS[0]} `.repeat(2)), auth("The-shared-key")]) {
        const reply = await fixture.call(name, { hostname: "h", slotToken: "s" }, init);
        expect([reply.status, reply.body.code]).toEqual([401, "UNAUTHORIZED"]);
        expect(reply.headers.get("www-authenticate")).toContain("X-FQ-Auth");
      }
    }
    expect((await fixture.acquire({}, auth("the-shared-key"))).status).toBe(200);
    for (const path of ["/", "/livez", "/readyz", "/openapi.json"])
      expect((await fixture.request("GET", path)).status).toBe(200);
    expect(fixture.service.dump().counts.session_created).toBe(1);
  });

  it("may be one of several, in a header of its own", async () => {
    const fixture = await startFixture({
      config: { auth: { enabled: true, header: "X-Key", token: KEYS[0], tokens: [KEYS[1]] } },
    });
    for (const key of KEYS) expect((await fixture.acquire({}, { headers: { "x-key": key } })).status).toBe(200);
    expect((await fixture.acquire({}, auth("the-shared-key"))).status).toBe(401);
    const document = JSON.parse((await fixture.request("GET", "/openapi.json")).text) as {
      components: { securitySchemes: { sharedKey: { name: string } } };
    };
    expect(document.components.securitySchemes.sharedKey.name).toBe("X-Key");
  });

  it("is checked before the body: without it, a caller gets no other error", async () => {
    const fixture = await startFixture({ config: { auth: { enabled: true, token: KEYS[0] } } });
    expect((await fixture.request("POST", "/api/v0/fairqueue/acquire", { body: "nonsense" })).status).toBe(401);
    expect((await fixture.request("GET", "/api/v0/fairqueue/acquire")).status).toBe(405);
  });

  it("is not needed if it is set but not enabled", async () => {
    const fixture = await startFixture({ config: { auth: { enabled: false, token: KEYS[0] } } });
    expect((await fixture.acquire()).status).toBe(200);
  });
});

describe("the internal API", () => {
  const ROUTES = [
    ["GET", "/api/v0/health"],
    ["POST", "/api/v0/refresh"],
    ["POST", "/api/v0/flush"],
  ] as const;

  it.each(ROUTES)(
    "%s %s is 404 without a configured token and with a missing or wrong one; 204 with the right one",
    async (method, path) => {
      const open = await startFixture();
      expect((await open.request(method, path, bearer(BEARER))).status).toBe(404);
      const fixture = await startFixture({ config: { internalApiToken: BEARER } });
      const wrong = [
        {},
        bearer("wrong"),
        bearer(""),
        { headers: { authorization: `Basic ${BEARER}` } },
        { headers: { authorization: BEARER } },
      ];
      for (const init of wrong) {
        const reply = await fixture.request(method, path, init);
        expect([reply.status, reply.body.code]).toEqual([404, "NOT_FOUND"]);
      }
      expect((await fixture.request("DELETE", path)).status).toBe(404);
      expect((await fixture.request("DELETE", path, bearer(BEARER))).status).toBe(405);
      expect((await fixture.request(method, path, bearer(BEARER))).status).toBe(204);
    },
  );

  it("health names the instance", async () => {
    const controller = { appName: "app", appVersion: "1.2", env: "test", role: "slot-handler", instanceId: "i-1" };
    const fixture = await startFixture({ config: { internalApiToken: BEARER, controller } });
    const { headers } = await fixture.request("GET", "/api/v0/health", bearer(BEARER));
    const named = ["name", "version"].map((key) => headers.get(`x-app-${key}`));
    expect([...named, headers.get("x-env"), headers.get("x-role"), headers.get("x-instance-id")]).toEqual([
      "app",
      "1.2",
      "test",
      "slot-handler",
      "i-1",
    ]);
    expect(headers.get("x-config-version")).toBe("default");
  });

  it("health sends text that is not ASCII as UTF-8, without line breaks", async () => {
    const file = configFile({ listen: "127.0.0.1:0", controller: { env: "prüfung-試" } }, "a\nb-試.json");
    const fixture = await startFixture({ file, config: { internalApiToken: BEARER } });
    const { status, headers } = await fixture.request("GET", "/api/v0/health", bearer(BEARER));
    const text = (name: string) => Buffer.from(headers.get(name) ?? "", "latin1").toString();
    expect([status, text("x-env"), text("x-config-version")]).toEqual([204, "prüfung-試", "file:a?b-試.json"]);
  });

  it("actions are logged as audit records", async () => {
    const fixture = await startFixture({ config: { internalApiToken: BEARER } });
    await fixture.request("POST", "/api/v0/flush", bearer(BEARER));
    expect(fixture.logged.join("")).toContain('"msg":"audit: flush"');
  });

  it("the bearer does not open routes for callers, and the shared key does not open internal routes", async () => {
    const fixture = await startFixture({
      config: { internalApiToken: BEARER, auth: { enabled: true, token: KEYS[0] } },
    });
    expect((await fixture.acquire({}, bearer(BEARER))).status).toBe(401);
    expect((await fixture.request("GET", "/api/v0/health", bearer("the-shared-key"))).status).toBe(404);
  });
});

describe("the operator routes", () => {
  /** `fetch` does not let its caller set the Host header. */
  function statusWith(
    url: string,
    headers: Record<string, string>,
    path = "/api/v0/state",
  ): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const asked = get(`${url}${path}`, { headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      asked.on("error", reject);
    });
  }

  it.each(["/api/v0/state", "/metrics"])(
    "such as %s are, without a configured token, open to this machine only: not by another name, not through a proxy",
    async (path) => {
      const fixture = await startFixture();
      const { port } = new URL(fixture.url);
      for (const host of ["localhost", "LOCALHOST", "127.0.0.1", "[::1]", `localhost:${port}`]) {
        expect([host, await statusWith(fixture.url, { host }, path)]).toEqual([host, 200]);
      }
      const strangers = [
        { host: "evil.example" },
        { host: "localhost.evil.example" },
        { host: `127.0.0.1.evil.example:${port}` },
        { forwarded: "for=127.0.0.1" },
        { "x-forwarded-for": "127.0.0.1" },
        { "X-Forwarded-Proto": "https" },
        { via: "1.1 proxy" },
        { "X-Real-IP": "127.0.0.1" },
        { "CF-Connecting-IP": "127.0.0.1" },
        { "cf-ray": "x" },
        { "CDN-Loop": "cdn" },
        { "True-Client-IP": "127.0.0.1" },
        { "Client-IP": "127.0.0.1" },
        { "X-Client-IP": "127.0.0.1" },
        { "X-Cluster-Client-IP": "127.0.0.1" },
        { "X-ProxyUser-Ip": "127.0.0.1" },
        { "X-Envoy-Expected-Rq-Timeout-Ms": "15000" },
        { "Fly-Client-IP": "127.0.0.1" },
        { "Fastly-Client-IP": "127.0.0.1" },
        { "X-Azure-ClientIP": "127.0.0.1" },
        { "X-Original-URL": "/" },
        { "X-Amzn-Trace-Id": "x" },
      ];
      // Node drops headers above a limit unless configured otherwise, and a proxy adds its headers at the end.
      const many = Object.fromEntries(Array.from({ length: 2_100 }, (_, at) => [`h${at}`, ""]));
      expect(await statusWith(fixture.url, { ...many, "x-forwarded-for": "127.0.0.1" }, path)).toBe(404);
      for (const headers of strangers) {
        expect([headers, await statusWith(fixture.url, headers, path)]).toEqual([headers, 404]);
      }
    },
  );

  // nginx before 1.29.7 sends this for a plain `proxy_pass http://127.0.0.1:8080;`: no header says that it is a proxy.
  it("without a configured token are closed to HTTP/1.0, which is a proxy that adds no header", async () => {
    const fixture = await startFixture();
    const asked = (version: string) =>
      `GET /api/v0/state HTTP/${version}\r\nHost: ${new URL(fixture.url).host}\r\nConnection: close\r\n\r\n`;
    expect(await rawAnswer(fixture, asked("1.1"))).toMatch(/^HTTP\/1\.1 200 /);
    expect(await rawAnswer(fixture, asked("1.0"))).toMatch(/^HTTP\/1\.1 404 /);
  });

  it("without a configured token are closed if the listener is reachable from elsewhere, and the start logs a warning", async () => {
    const isWarned = (logged: string[]) => logged.some((line) => line.includes("without `internalApiToken`"));
    const open = await startFixture({ config: { listen: "0.0.0.0:0" } });
    expect(await statusWith(open.url, { host: "127.0.0.1" })).toBe(404);
    expect(await statusWith(open.url, { host: "127.0.0.1" }, "/metrics")).toBe(404);
    expect(isWarned(open.logged)).toBe(true);
    const guarded = await startFixture({ config: { listen: "0.0.0.0:0", internalApiToken: BEARER } });
    expect(await statusWith(guarded.url, bearer(BEARER).headers)).toBe(200);
    expect(isWarned(guarded.logged)).toBe(false);
    expect(isWarned((await startFixture()).logged)).toBe(false);
  });

  it("with a configured token need it, even from this machine", async () => {
    const fixture = await startFixture({ config: { internalApiToken: BEARER } });
    expect(await statusWith(fixture.url, {})).toBe(404);
    expect(
      await statusWith(fixture.url, { ...bearer(BEARER).headers, host: "service.example", forwarded: "for=1" }),
    ).toBe(200);
  });

  it("keep the bearer of the metrics to the metrics, which the internal one opens, too", async () => {
    const own = "a-token-of-the-scraper";
    const fixture = await startFixture({ config: { internalApiToken: BEARER, metrics: { token: own } } });
    const both = [own, BEARER].map((token) => bearer(token).headers);
    const answers = (path: string) => Promise.all(both.map((headers) => statusWith(fixture.url, headers, path)));
    expect(await answers("/metrics")).toEqual([200, 200]);
    expect(await answers("/api/v0/state")).toEqual([404, 200]);
    expect(await statusWith(fixture.url, {}, "/metrics")).toBe(404);
    const alone = await startFixture({ config: { metrics: { token: own } } });
    expect(await statusWith(alone.url, {}, "/metrics")).toBe(404);
    expect(await statusWith(alone.url, bearer(own).headers, "/metrics")).toBe(200);
    expect(await statusWith(alone.url, bearer(own).headers, "/api/v0/health")).toBe(404);
  });

  it("return hosts by pages, with buckets, slots and sessions", async () => {
    const fixture = await startFixture({ config: { fairQueue: { maxSlotPerHost: 1 } } });
    for (const hostname of ["a", "b", "c"]) await fixture.take({ hostname, ipBucket: "x" });
    await fixture.acquire({ hostname: "a", ipBucket: "y" });
    const pages = [];
    for (const offset of [0, 2, 4]) {
      const { text } = await fixture.request("GET", `/api/v0/state?offset=${offset}&limit=2`);
      pages.push(JSON.parse(text) as ServiceState);
    }
    expect(pages.map(({ hosts, total }) => [hosts.length, total])).toEqual([
      [2, 3],
      [1, 3],
      [0, 3],
    ]);
    const host = pages.flatMap(({ hosts }) => hosts).find(({ hostname }) => hostname === "a");
    expect(host).toMatchObject({ limit: 1, inFlight: 1, pending: 1, breaker: "closed" });
    expect(host?.slots).toHaveLength(1);
    expect(host?.sessions).toHaveLength(1);
    expect(JSON.stringify(pages)).not.toMatch(/slot_|fq1/);
  });

  it("return what is left of the budgets of a host, what a session costs, and why the first one waits", async () => {
    const budgets = { tokens: { limit: 1_000, perSeconds: 10_000, burst: 500, default: 3 } };
    const hosts = { "api.example": { budgets, maxSlotPerIp: -1 } };
    const fixture = await startFixture({ config: { fairQueue: { hosts } } });
    await fixture.take({ hostname: "api.example", cost: { tokens: 400 } });
    const waiting = { tokens: 200 };
    const first = await fixture.acquire({ hostname: "api.example", cost: waiting, waitMs: 1 });
    const held = fixture.poll(first.body.queryToken);
    await fixture.take({ hostname: "plain.example" });
    const state = JSON.parse((await fixture.request("GET", "/api/v0/state")).text) as ServiceState;
    const host = state.hosts.find(({ hostname }) => hostname === "api.example") as ServiceState["hosts"][number];
    const [budget] = host.budgets ?? [];
    expect(budget).toEqual({
      ...budgets.tokens,
      name: "tokens",
      isShadow: false,
      available: expect.closeTo(100, -1),
      fullInMs: expect.closeTo(4_000_000, -5),
    });
    const [session] = host.sessions as [(typeof host.sessions)[number]];
    expect(session).toMatchObject({ cost: waiting, blockedBy: "budget:tokens", isAwake: true });
    expect(waitCause(session, host, { bucket: "", breakerLeft: "" }).cause).toBe(
      "It costs 200 of the budget “tokens”, and 100 are left.",
    );
    expect(state.hosts.find(({ hostname }) => hostname === "plain.example")).not.toHaveProperty("budgets");
    await fixture.call("cancel", { queryToken: first.body.queryToken });
    await held;
  });

  it.each(["offset=-1", "limit=0", "limit=1001", "limit=x", "offset=1.5"])("?%s is 400", async (query) => {
    const fixture = await startFixture();
    expect((await fixture.request("GET", `/api/v0/state?${query}`)).body.code).toBe("BAD_FIELDS");
  });
});

describe("browsers", () => {
  const preflight = (origin: string) => ({
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type,x-fq-auth",
    },
  });

  it("of an allowed origin may call, and the preflight needs no key", async () => {
    const config = { cors: { origins: ["https://app.example"] }, auth: { enabled: true, token: KEYS[0] } };
    const fixture = await startFixture({ config });
    const asked = await fixture.request("OPTIONS", "/api/v0/fairqueue/acquire", preflight("https://app.example"));
    expect(asked.status).toBe(204);
    expect(asked.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(asked.headers.get("access-control-allow-headers")).toContain("X-FQ-Auth");
    expect(asked.headers.get("access-control-allow-headers")).toContain("traceparent");
    const headers = { origin: "https://app.example", "X-FQ-Auth": "the-shared-key" };
    const answered = await fixture.acquire({}, { headers });
    expect(answered.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(answered.headers.get("access-control-expose-headers")).toContain("Retry-After");
    const refused = await fixture.acquire({}, { headers: { origin: "https://app.example" } });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, "https://app.example"]);
  });

  it("of another origin, or if no origin is allowed, get no permission", async () => {
    const listed = await startFixture({ config: { cors: { origins: ["https://app.example"] } } });
    const closed = await startFixture();
    for (const fixture of [listed, closed]) {
      const asked = await fixture.request("OPTIONS", "/api/v0/fairqueue/acquire", preflight("https://evil.example"));
      expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([405, null]);
    }
  });

  it("cannot be used by a page of another origin to post if no key is needed", async () => {
    const fixture = await startFixture({ config: { cors: { origins: ["https://app.example"] } } });
    const post = (name: string, origin: string, more: Record<string, string> = {}) =>
      fixture.call(
        name,
        { hostname: "h", status: 503, slotToken: "s", queryToken: "q" },
        { headers: { origin, "content-type": "text/plain", ...more } },
      );
    for (const name of ["acquire", "release", "renew", "cancel", "report"]) {
      for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1", "https://app.example.evil.example"]) {
        const reply = await post(name, origin);
        expect([name, origin, reply.status, reply.body.code]).toEqual([name, origin, 403, "FOREIGN_ORIGIN"]);
      }
    }
    expect(fixture.service.dump().hosts).toEqual([]);
    expect((await post("report", "https://app.example")).status).toBe(200);
    expect((await post("report", fixture.url)).status).toBe(200);
    const keyed = await startFixture({ config: { auth: { enabled: true, token: KEYS[0] } } });
    const headers = { origin: "https://evil.example", "X-FQ-Auth": "the-shared-key" };
    expect((await keyed.acquire({}, { headers })).status).toBe(200);
  });

  it("with a name that was rebound to this address count as another origin", async () => {
    const fixture = await startFixture();
    const { port } = new URL(fixture.url);
    const body = '{"hostname":"h","status":503}';
    const host = `evil.example:${port}`;
    const answer = await rawAnswer(
      fixture,
      `POST /api/v0/fairqueue/report HTTP/1.1\r\nHost: ${host}\r\nOrigin: http://${host}\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  });

  it("get no permission for the internal API, whatever origins are allowed", async () => {
    const fixture = await startFixture({ config: { cors: { origins: ["*"] }, internalApiToken: BEARER } });
    const reply = await fixture.request("GET", "/api/v0/health", {
      headers: { origin: "https://a.example", ...bearer(BEARER).headers },
    });
    expect([reply.status, reply.headers.get("access-control-allow-origin")]).toEqual([204, null]);
  });
});

describe("request ids", () => {
  it("are created, or accepted if harmless, and appear in the answer and in the log", async () => {
    const fixture = await startFixture();
    const own = await fixture.request("GET", "/nowhere", { headers: { "x-request-id": "mine-1" } });
    expect(own.headers.get("x-request-id")).toBe("mine-1");
    const made = await fixture.request("GET", "/nowhere", { headers: { "x-request-id": "no good: {}" } });
    const id = made.headers.get("x-request-id") ?? "";
    expect(id).toMatch(/^[\w-]{12}$/);
    await expect.poll(() => fixture.logged.filter((line) => line.includes('"msg":"request"')).length).toBe(2);
    expect(fixture.logged.join("")).toContain('"requestId":"mine-1"');
    expect(fixture.logged.join("")).toContain(`"requestId":"${id}"`);
  });
});
