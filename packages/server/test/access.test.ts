import { describe, expect, it } from "vitest";
import { startFixture } from "./service-fixture.ts";

const KEYS = ["the shared key", "the next shared key"];
const BEARER = "internal-token";
const auth = (token: string) => ({ headers: { "X-FQ-Auth": token } });
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

describe("the shared key", () => {
  it("is needed on every caller's route, and only there", async () => {
    const fixture = await startFixture({ config: { auth: { enabled: true, token: KEYS[0] } } });
    for (const name of ["acquire", "release", "renew", "cancel", "report"]) {
      for (const init of [{}, auth(""), auth("wrong"), auth(`${KEYS[0]} `.repeat(2)), auth("The shared key")]) {
        const reply = await fixture.call(name, { hostname: "h", slotToken: "s" }, init);
        expect([reply.status, reply.body.code]).toEqual([401, "UNAUTHORIZED"]);
        expect(reply.headers.get("www-authenticate")).toContain("X-FQ-Auth");
      }
    }
    expect((await fixture.acquire({}, auth("the shared key"))).status).toBe(200);
    for (const path of ["/", "/livez", "/readyz", "/openapi.json"])
      expect((await fixture.request("GET", path)).status).toBe(200);
    expect(fixture.service.dump().counts.session_created).toBe(1);
  });

  it("may be one of several, in a header of its own", async () => {
    const fixture = await startFixture({
      config: { auth: { enabled: true, header: "X-Key", token: KEYS[0], tokens: [KEYS[1]] } },
    });
    for (const key of KEYS) expect((await fixture.acquire({}, { headers: { "x-key": key } })).status).toBe(200);
    expect((await fixture.acquire({}, auth("the shared key"))).status).toBe(401);
    const document = JSON.parse((await fixture.request("GET", "/openapi.json")).text) as {
      components: { securitySchemes: { sharedKey: { name: string } } };
    };
    expect(document.components.securitySchemes.sharedKey.name).toBe("X-Key");
  });

  it("is looked at before the body: a stranger's mistakes are not discussed", async () => {
    const fixture = await startFixture({ config: { auth: { enabled: true, token: KEYS[0] } } });
    expect((await fixture.request("POST", "/api/v0/fairqueue/acquire", { body: "nonsense" })).status).toBe(401);
    expect((await fixture.request("GET", "/api/v0/fairqueue/acquire")).status).toBe(405);
  });

  it("set but not enabled is not needed", async () => {
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
    "%s %s is 404 with no token set, and with a missing or wrong one; 204 with the right one",
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

  it("health says who this is", async () => {
    const controller = { appName: "app", appVersion: "1.2", env: "test", role: "slot-handler", instanceId: "i-1" };
    const fixture = await startFixture({ config: { internalApiToken: BEARER, controller } });
    const { headers } = await fixture.request("GET", "/api/v0/health", bearer(BEARER));
    const told = ["name", "version"].map((key) => headers.get(`x-app-${key}`));
    expect([...told, headers.get("x-env"), headers.get("x-role"), headers.get("x-instance-id")]).toEqual([
      "app",
      "1.2",
      "test",
      "slot-handler",
      "i-1",
    ]);
    expect(headers.get("x-config-version")).toBe("default");
  });

  it("actions are logged as audit records", async () => {
    const fixture = await startFixture({ config: { internalApiToken: BEARER } });
    await fixture.request("POST", "/api/v0/flush", bearer(BEARER));
    expect(fixture.logged.join("")).toContain('"msg":"audit: flush"');
  });

  it("the bearer does not open callers' routes, nor the shared key the internal ones", async () => {
    const fixture = await startFixture({
      config: { internalApiToken: BEARER, auth: { enabled: true, token: KEYS[0] } },
    });
    expect((await fixture.acquire({}, bearer(BEARER))).status).toBe(401);
    expect((await fixture.request("GET", "/api/v0/health", bearer("the shared key"))).status).toBe(404);
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

  it("of a listed origin may call, without the key for the preflight", async () => {
    const config = { cors: { origins: ["https://app.example"] }, auth: { enabled: true, token: KEYS[0] } };
    const fixture = await startFixture({ config });
    const asked = await fixture.request("OPTIONS", "/api/v0/fairqueue/acquire", preflight("https://app.example"));
    expect(asked.status).toBe(204);
    expect(asked.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(asked.headers.get("access-control-allow-headers")).toContain("X-FQ-Auth");
    const headers = { origin: "https://app.example", "X-FQ-Auth": "the shared key" };
    const answered = await fixture.acquire({}, { headers });
    expect(answered.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(answered.headers.get("access-control-expose-headers")).toContain("Retry-After");
    const refused = await fixture.acquire({}, { headers: { origin: "https://app.example" } });
    expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([401, "https://app.example"]);
  });

  it("of another origin, or with none listed, get no permission", async () => {
    const listed = await startFixture({ config: { cors: { origins: ["https://app.example"] } } });
    const closed = await startFixture();
    for (const fixture of [listed, closed]) {
      const asked = await fixture.request("OPTIONS", "/api/v0/fairqueue/acquire", preflight("https://evil.example"));
      expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([405, null]);
    }
  });

  it("get no permission for the internal API, whatever is listed", async () => {
    const fixture = await startFixture({ config: { cors: { origins: ["*"] }, internalApiToken: BEARER } });
    const reply = await fixture.request("GET", "/api/v0/health", {
      headers: { origin: "https://a.example", ...bearer(BEARER).headers },
    });
    expect([reply.status, reply.headers.get("access-control-allow-origin")]).toEqual([204, null]);
  });
});

describe("request ids", () => {
  it("are made, or taken over where harmless, and come back in the answer and in the log", async () => {
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
