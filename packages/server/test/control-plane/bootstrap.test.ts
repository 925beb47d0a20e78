import { writeFileSync } from "node:fs";
import { effectiveConfig, printedKeys, Service } from "@slotkeeper/server";
import { describe, expect, it } from "vitest";
import { configFile, type Fixture, type FixtureInit, startFixture } from "../service-fixture.ts";
import { FakeController } from "./fake-controller.ts";

const BEARER = { headers: { authorization: "Bearer internal" } };
const QUICK = { attempts: 3, retryMs: 1, timeoutMs: 5_000 };
const refresh = (fixture: Fixture) => fixture.request("POST", "/api/v0/refresh", BEARER);
const version = async (fixture: Fixture) =>
  (await fixture.request("GET", "/api/v0/health", BEARER)).headers.get("x-config-version");

/** A service whose file points at the controller. `rewrite` changes the file. */
async function start(controller: FakeController, file: object = {}, more: FixtureInit = {}) {
  const whole = (own: object, apiToken: string) => ({
    listen: "127.0.0.1:0",
    internalApiToken: "internal",
    controller: { url: controller.url, apiToken, env: "test", instanceId: "i-1" },
    ...own,
  });
  const path = configFile(whole(file, "controller-token-1"));
  const fixture = await startFixture({ file: path, config: {}, controlTimes: QUICK, ...more });
  const rewrite = (own: object, apiToken = "controller-token-1") =>
    writeFileSync(path, JSON.stringify(whole(own, apiToken)));
  return { fixture, rewrite, path };
}

describe("bootstrap", () => {
  it("sends role, environment and instance, and merges the answer over the file key by key", async () => {
    const controller = await new FakeController().up();
    controller.answer = {
      configVersion: 42,
      slotHandler: { fairQueue: { maxSlotPerHost: 2, maxWaitMs: null, hosts: { "a.example": { maxSlotPerHost: 7 } } } },
    };
    const file = { fairQueue: { maxSlotPerHost: 9, maxSlotPerIp: 4, maxWaitMs: 1234, breaker: { openSeconds: 5 } } };
    const { fixture } = await start(controller, file);
    expect(controller.bootstraps).toEqual([
      { role: "slot-handler", env: "test", instance_id: "i-1", path: "/api/v0/bootstrap" },
    ]);
    const { fairQueue } = fixture.service.config.settings;
    expect(fairQueue).toMatchObject({ maxSlotPerHost: 2, maxSlotPerIp: 4, maxWaitMs: 1234 });
    expect(fairQueue.breaker).toMatchObject({ openSeconds: 5, windowSeconds: 60 });
    expect(await version(fixture)).toBe("42");
  });

  it("the order of priority is flags, environment, controller, file, defaults; every value shows its origin", async () => {
    const controller = await new FakeController().up();
    controller.answer = {
      configVersion: "v1",
      slotHandler: { fairQueue: { maxWaitMs: 2, pollIntervalMs: 2, collectMs: 2 } },
    };
    const path = configFile({
      controller: { url: controller.url, apiToken: "controller-token-1" },
      fairQueue: { maxWaitMs: 1, pollIntervalMs: 1, collectMs: 1, pollWindowMs: 1 },
    });
    const config = await effectiveConfig(
      {
        file: path,
        environment: { SLOTKEEPER_FAIR_QUEUE__POLL_INTERVAL_MS: "3", SLOTKEEPER_FAIR_QUEUE__COLLECT_MS: "3" },
        flags: { fairQueue: { collectMs: 4 } },
      },
      () => {},
    );
    const shown = new Map(printedKeys(config).map(({ key, value, origin }) => [key, [value, origin]]));
    const keys = ["collectMs", "pollIntervalMs", "maxWaitMs", "pollWindowMs", "sessionIdleSeconds"];
    expect(keys.map((key) => shown.get(`fairQueue.${key}`))).toEqual([
      [4, "flag"],
      [3, "environment"],
      [2, "controller"],
      [1, "file config.json"],
      [90, "default"],
    ]);
    expect(shown.get("controller.apiToken")).toEqual(["[redacted]", "file config.json"]);
  });

  it("a custom prefix is used, with slashes or without", async () => {
    const controller = await new FakeController().up();
    const flags = {
      controller: { apiPrefix: "internal/v9/", url: `${controller.url}/`, apiToken: "controller-token-1" },
    };
    await effectiveConfig({ flags }, () => {});
    expect(controller.bootstraps[0]?.["path"]).toBe("/internal/v9/bootstrap");
  });

  it("keys that the file does not have may come from the controller", async () => {
    const controller = await new FakeController().up();
    controller.answer = { configVersion: "v1", slotHandler: { auth: { token: "from-the-controller" } } };
    const { fixture } = await start(controller, { auth: { enabled: true } });
    expect((await fixture.acquire({}, { headers: { "x-fq-auth": "from-the-controller" } })).status).toBe(200);
    expect((await fixture.acquire()).status).toBe(401);
  });

  it.each([
    [{ slotHandler: { fairQueue: { maxSlotPerHost: 0.5 }, logLevel: 1 } }, ["fairQueue.maxSlotPerHost", "logLevel"]],
    [{ slotHandler: { auth: { enabled: true } } }, ["auth.token"]],
    [{ slotHandler: [] }, ["slotHandler"]],
    [{ configVersion: {}, slotHandler: 1 }, ["configVersion", "slotHandler"]],
    [[], ["answer"]],
    [
      { slotHandler: { controller: { url: "http://elsewhere.example", apiPrefix: "x" } } },
      ["controller.url", "controller.apiPrefix"],
    ],
  ])(
    "a bad configuration %j is refused with all problems; at the start the file is used, with a warning",
    async (answer, paths) => {
      const controller = await new FakeController().up();
      controller.answer = answer;
      const { fixture } = await start(controller, { fairQueue: { maxSlotPerHost: 3 } });
      expect(await version(fixture)).toBe("file:config.json");
      const loud = fixture.logged.filter((line) => line.includes("NO CONFIGURATION FROM THE CONTROLLER"));
      expect(loud).toHaveLength(1);
      for (const path of paths) expect(loud[0]).toContain(path);
    },
  );

  it("an unknown key is a warning, and the rest of the configuration is used", async () => {
    const controller = await new FakeController().up();
    controller.answer = { configVersion: "new", slotHandler: { colour: 1, fairQueue: { maxSlotPerHost: 2 } } };
    const { fixture } = await start(controller);
    expect(await version(fixture)).toBe("new");
    expect(fixture.service.config.settings.fairQueue.maxSlotPerHost).toBe(2);
    expect(fixture.logged.filter((line) => line.includes("unknown key `colour` (controller)"))).toHaveLength(1);
  });

  it("a bad configuration on refresh is 502 with all problems, and the old one stays", async () => {
    const controller = await new FakeController().up();
    controller.answer = { configVersion: "good", slotHandler: { fairQueue: { maxSlotPerHost: 2 } } };
    const { fixture } = await start(controller);
    controller.answer = {
      configVersion: "bad",
      slotHandler: { fairQueue: { maxSlotPerHost: "many", maxWaitMs: "x" } },
    };
    const { status, body } = await refresh(fixture);
    expect([status, body.code]).toEqual([502, "BAD_CONFIG"]);
    for (const path of ["fairQueue.maxSlotPerHost", "fairQueue.maxWaitMs"]) expect(body.detail).toContain(path);
    expect(await version(fixture)).toBe("good");
    expect(fixture.service.config.settings.fairQueue.maxSlotPerHost).toBe(2);
  });
});

describe("an unreachable controller", () => {
  it.each([
    ["cut off", { kind: "refuse" }],
    ["silent", { kind: "hang" }],
    ["failing", { kind: "status", status: 503 }],
    ["talking nonsense", { kind: "text", text: "<html>" }],
  ] as const)("%s at the start is asked again, and its configuration is used once it answers", async (_, mishap) => {
    const controller = await new FakeController().up();
    controller.answer = { configVersion: "v1", slotHandler: {} };
    controller.mishaps.bootstrap.push(mishap, mishap);
    const patience = mishap.kind === "hang" ? { ...QUICK, attempts: 20, timeoutMs: 250 } : QUICK;
    const { fixture } = await start(controller, {}, { controlTimes: patience });
    expect(await version(fixture)).toBe("v1");
  });

  it("at the start: the file is used with a warning, and later the controller's configuration", async () => {
    const controller = await new FakeController().up();
    controller.answer = { configVersion: "v1", slotHandler: { fairQueue: { maxSlotPerHost: 2 } } };
    await controller.down();
    const { fixture } = await start(
      controller,
      { fairQueue: { maxSlotPerHost: 3 } },
      { controlTimes: { ...QUICK, pushEveryMs: 20 } },
    );
    expect(fixture.logged.join("")).toContain("NO CONFIGURATION FROM THE CONTROLLER: running from file:config.json");
    expect(fixture.logged.filter((line) => line.includes("trying again"))).toHaveLength(2);
    expect(fixture.service.config.settings.fairQueue.maxSlotPerHost).toBe(3);
    const { text } = await fixture.request("GET", "/metrics", BEARER);
    expect(text).toContain("slotkeeper_config_fallback 1");
    await controller.up();
    await expect.poll(() => version(fixture)).toBe("v1");
    expect(fixture.service.config.settings.fairQueue.maxSlotPerHost).toBe(2);
  });

  it("later: a refresh is 502, and the service continues with its configuration", async () => {
    const controller = await new FakeController().up();
    controller.answer = { configVersion: "v1", slotHandler: { fairQueue: { maxSlotPerHost: 2 } } };
    const { fixture } = await start(controller);
    await controller.down();
    const { status, body } = await refresh(fixture);
    expect([status, body.code]).toEqual([502, "CONTROLLER_UNREACHABLE"]);
    expect(await version(fixture)).toBe("v1");
    expect((await fixture.take()).result).toBe("granted");
  });

  it("does not replace a file that is invalid itself", async () => {
    const controller = await new FakeController().up();
    const file = configFile({ controller: { url: controller.url, apiToken: "t" }, fairQueue: { maxSlotPerHost: 1.5 } });
    const log = { write: () => {}, isJson: true, hasColours: false };
    await expect(Service.start({ file, log, controlTimes: QUICK })).rejects.toThrow(/maxSlotPerHost/);
    expect(controller.calls).toBe(0);
  });

  it("is not asked without a token: the service runs without a controller, with a warning", async () => {
    const controller = await new FakeController().up();
    const fixture = await startFixture({ file: configFile({ controller: { url: controller.url } }) });
    expect((await fixture.take()).result).toBe("granted");
    expect(fixture.logged.join("")).toContain("`controller.url` is set, but `controller.apiToken` is not");
    expect(controller.calls).toBe(0);
  });

  it("that redirects does not get the token sent to another address", async () => {
    const [controller, other] = [await new FakeController().up(), await new FakeController().up()];
    const { fixture } = await start(controller);
    controller.mishaps.bootstrap.push({ kind: "status", status: 307, location: `${other.url}/api/v0/bootstrap` });
    expect((await refresh(fixture)).status).toBe(502);
    expect(other.calls).toBe(0);
  });
});

describe("a rotated token", () => {
  it("in the file is used from the next refresh on", async () => {
    const controller = await new FakeController().up();
    const { fixture, rewrite } = await start(controller);
    controller.tokens = ["controller-token-2"];
    expect((await refresh(fixture)).body.code).toBe("CONTROLLER_UNREACHABLE");
    rewrite({}, "controller-token-2");
    expect((await refresh(fixture)).status).toBe(204);
    expect((await fixture.request("POST", "/api/v0/flush", BEARER)).status).toBe(204);
  });

  it("from the controller itself is used from then on; if it is refused, the token of the file is tried again", async () => {
    const controller = await new FakeController().up();
    controller.answer = { configVersion: "v2", slotHandler: { controller: { apiToken: "controller-token-2" } } };
    const { fixture } = await start(controller);
    controller.tokens = ["controller-token-2"];
    expect((await fixture.request("POST", "/api/v0/flush", BEARER)).status).toBe(204);
    expect((await refresh(fixture)).status).toBe(204);
    controller.tokens = ["controller-token-1"];
    expect((await refresh(fixture)).status).toBe(204);
  });

  it("is never logged, whatever fails", async () => {
    const controller = await new FakeController().up();
    controller.answer = {
      configVersion: "v1",
      slotHandler: { controller: { apiToken: "controller-token-2" }, internalApiToken: "internal" },
    };
    const { fixture } = await start(controller, { logLevel: "debug" });
    controller.tokens = ["controller-token-2", "controller-token-1"];
    controller.mishaps.bootstrap.push({ kind: "status", status: 500 }, { kind: "text", text: "controller-token-2" });
    controller.mishaps.metrics.push({ kind: "refuse" });
    for (let call = 0; call < 3; call++) await refresh(fixture);
    await fixture.request("POST", "/api/v0/flush", BEARER);
    controller.answer = {
      slotHandler: { auth: { token: 17, tokens: ["controller-token-2"] }, colour: "controller-token-2" },
    };
    await refresh(fixture);
    expect(fixture.logged.join("")).not.toMatch(/controller-token|Bearer/);
  });
});

describe("a refresh from the controller", () => {
  it("changes limits live and keeps sessions, slots and places", async () => {
    const controller = await new FakeController().up();
    controller.answer = { configVersion: "v1", slotHandler: { fairQueue: { maxSlotPerHost: 1 } } };
    const { fixture } = await start(controller);
    const slot = await fixture.take({ ipBucket: "a" });
    const { queryToken } = (await fixture.acquire({ ipBucket: "b" })).body;
    const held = fixture.poll(queryToken);
    controller.answer = { configVersion: "v2", slotHandler: { fairQueue: { maxSlotPerHost: 2 } } };
    await fixture.service.refresh();
    expect((await held).body.result).toBe("granted");
    expect((await fixture.call("renew", { slotToken: slot.slotToken })).status).toBe(200);
    expect(await version(fixture)).toBe("v2");
  });

  it("resets the spacing of releases", async () => {
    const controller = await new FakeController().up();
    controller.answer = {
      configVersion: "v1",
      slotHandler: { fairQueue: { maxSlotPerHost: 1, maxSlotPerIp: -1, smoothReleaseIntervalMs: 20_000 } },
    };
    const { fixture } = await start(controller);
    await fixture.release((await fixture.take()).slotToken);
    await fixture.request("POST", "/api/v0/flush", BEARER);
    expect(controller.taken.at(-1)?.events[0]?.["smoothHosts"]).toBe(1);
    await refresh(fixture);
    await fixture.request("POST", "/api/v0/flush", BEARER);
    expect(controller.taken.at(-1)?.events[0]?.["smoothHosts"]).toBe(0);
    // With spacing from the release before the refresh, this one would end in 20 s.
    await fixture.release((await fixture.take()).slotToken);
    expect((await fixture.take()).result).toBe("granted");
  });

  it("is not run twice at once: the second waits for the first", async () => {
    const controller = await new FakeController().up();
    const { fixture } = await start(controller);
    controller.answer = { configVersion: "v2", slotHandler: {} };
    const statuses = await Promise.all([refresh(fixture), refresh(fixture)]);
    expect(statuses.map(({ status }) => status)).toEqual([204, 204]);
    expect(await version(fixture)).toBe("v2");
  });
});
