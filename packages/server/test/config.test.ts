import { ConfigError, formatPrinted, loadConfig, printedKeys } from "@slotkeeper/server";
import { describe, expect, it } from "vitest";
import { configFile } from "./service-fixture.ts";

function problemsOf(sources: Parameters<typeof loadConfig>[0]): readonly string[] {
  try {
    loadConfig(sources);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

const originOf = (sources: Parameters<typeof loadConfig>[0], key: string) =>
  printedKeys(loadConfig(sources)).find((printed) => printed.key === key);

describe("layers", () => {
  it("without a file: memory on 127.0.0.1:8080; with one: every address", () => {
    expect(loadConfig({}).settings.listen).toEqual({ host: "127.0.0.1", port: 8080 });
    const { settings, version } = loadConfig({ file: configFile({}, "mine.json") });
    expect([settings.listen, settings.backend, version]).toEqual([
      { host: undefined, port: 8080 },
      { mode: "memory", journal: undefined },
      "file:mine.json",
    ]);
  });

  it("flags beat the environment, the environment the file, the file the defaults: key by key", () => {
    const file = configFile({
      listen: ":1",
      logLevel: "warn",
      fairQueue: { maxWaitMs: 1, pollWindowMs: 1, collectMs: 1 },
    });
    const environment = {
      SLOTKEEPER_LISTEN: ":2",
      SLOTKEEPER_FAIR_QUEUE__MAX_WAIT_MS: "2",
      SLOTKEEPER_FAIR_QUEUE__POLL_WINDOW_MS: "2",
    };
    const flags = { listen: ":3", fairQueue: { maxWaitMs: 3 } };
    const { settings } = loadConfig({ file, environment, flags });
    expect(settings.listen.port).toBe(3);
    expect(settings.logLevel).toBe("warn");
    expect(settings.fairQueue).toMatchObject({ maxWaitMs: 3, pollWindowMs: 2, collectMs: 1, pollIntervalMs: 500 });
    const shown = ["listen", "logLevel", "fairQueue.pollWindowMs", "fairQueue.pollIntervalMs"].map(
      (key) => originOf({ file, environment, flags }, key)?.origin,
    );
    expect(shown).toEqual(["flag", "file config.json", "environment", "default"]);
  });

  it("null is absent, in every layer and at every depth", () => {
    const file = configFile({
      listen: null,
      auth: null,
      fairQueue: { maxWaitMs: null, breaker: { openSeconds: null }, hosts: { a: { maxSlotPerHost: null } } },
    });
    const { settings } = loadConfig({ file, flags: { fairQueue: { pollWindowMs: null } } });
    expect(settings.fairQueue).toMatchObject({ maxWaitMs: 20_000, pollWindowMs: 6_000, breaker: { openSeconds: 60 } });
  });

  it("an override of one host keeps the file's value of another key of it", () => {
    const file = configFile({ fairQueue: { hosts: { "*.example.com": { maxSlotPerHost: 2, maxSlotPerIp: 2 } } } });
    const environment = { SLOTKEEPER_FAIR_QUEUE__HOSTS: '{"*.example.com":{"maxSlotPerHost":3}}' };
    const { settings } = loadConfig({ file, environment });
    expect(settings.fairQueue.hosts).toEqual({ "*.example.com": { maxSlotPerHost: 3, maxSlotPerIp: 2 } });
    expect(originOf({ file, environment }, 'fairQueue.hosts["*.example.com"].maxSlotPerIp')?.origin).toBe(
      "file config.json",
    );
  });
});

describe("the environment", () => {
  it.each([
    ["SLOTKEEPER_LISTEN", ":9", "listen", ":9"],
    ["SLOTKEEPER_INTERNAL_API_TOKEN", "t", "internalApiToken", "[redacted]"],
    ["SLOTKEEPER_AUTH__HEADER", "X-Other", "auth.header", "X-Other"],
    ["SLOTKEEPER_FAIR_QUEUE__WEIGHTED_SCHEDULER__ENABLED", "true", "fairQueue.weightedScheduler.enabled", true],
    ["SLOTKEEPER_FAIR_QUEUE__BREAKER__PROTECT_HTTP_CODES", "429,503", "fairQueue.breaker.protectHttpCodes", [429, 503]],
    ["SLOTKEEPER_FAIR_QUEUE__MAX_SLOT_PER_IP", "-1", "fairQueue.maxSlotPerIp", -1],
    ["SLOTKEEPER_CORS__ORIGINS", '["https://a","https://b"]', "cors.origins", ["https://a", "https://b"]],
    ["SLOTKEEPER_BACKEND__MEMORY__JOURNAL", "/tmp/j", "backend.memory.journal", "/tmp/j"],
  ])("%s=%s sets %s", (name, value, key, expected) => {
    expect(originOf({ environment: { [name]: value } }, key)).toEqual({ key, value: expected, origin: "environment" });
  });

  it("an empty variable is absent; others are nobody's business", () => {
    expect(loadConfig({ environment: { SLOTKEEPER_LISTEN: "", PATH: "/bin" } }).settings.listen.port).toBe(8080);
  });

  it("a value that does not read as its type, and an unknown variable, are problems", () => {
    const environment = {
      SLOTKEEPER_FAIR_QUEUE__MAX_WAIT_MS: "long",
      SLOTKEEPER_AUTH__ENABLED: "yes",
      SLOTKEEPER_FAIR_QUEUE__HOSTS: "{",
      SLOTKEEPER_FAIRQUEUE__MAX_WAIT_MS: "1",
    };
    expect(problemsOf({ environment }).toSorted()).toEqual([
      'Expected `auth.enabled` to be true or false, got "yes" (environment)',
      'Expected `fairQueue.hosts` to be an object, got "{" (environment)',
      'Expected `fairQueue.maxWaitMs` to be a number, got "long" (environment)',
      "Unknown variable `SLOTKEEPER_FAIRQUEUE__MAX_WAIT_MS` (environment)",
    ]);
  });
});

describe("problems", () => {
  it("are all listed at once, each with its path and its origin", () => {
    const file = configFile({
      listen: "8080",
      colour: "blue",
      logLevel: "loud",
      fairQueue: {
        maxWaitMs: "1",
        maxSlotPerHost: 0,
        hosts: { "*.x": { maxSlots: 1 } },
        breaker: { protectHttpCodes: [42] },
      },
      rpc: { releaseFunc: "drop table;" },
    });
    const problems = problemsOf({ file, flags: { tokenKeys: [] } });
    expect(problems.toSorted()).toEqual(
      [
        "Expected `fairQueue.breaker.protectHttpCodes[0]` to be at least 100, got 42 (file config.json)",
        'Expected `fairQueue.maxWaitMs` to be a number, got "1" (file config.json)',
        "Expected `fairQueue.maxSlotPerHost` to be at least 1, got 0 (file config.json)",
        'Expected `listen` to be `host:port` or `:port`, got "8080" (file config.json)',
        'Expected `logLevel` to be one of "debug", "info", "warn", "error", got "loud" (file config.json)',
        'Expected `rpc.releaseFunc` to be a valid SQL identifier, got "drop table;" (file config.json)',
        "Expected `tokenKeys` to be not empty (flag)",
        "Unknown key `colour` (file config.json)",
        'Unknown key `fairQueue.hosts["*.x"].maxSlots` (file config.json)',
      ].toSorted(),
    );
  });

  it("more than a handful are listed too", () => {
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`unknown${index}`, index]));
    expect(problemsOf({ file: configFile(many) })).toHaveLength(40);
  });

  it.each([
    [{ auth: { enabled: true } }, "`auth.token` or `auth.tokens` is required because `auth.enabled` is true"],
    [{ backend: { mode: "postgres" } }, '`backend.postgres.dsn` is required because `backend.mode` is "postgres"'],
    [
      { backend: { mode: "postgrest" } },
      '`backend.postgrest.baseUrl` is required because `backend.mode` is "postgrest"',
    ],
    [
      { backend: { postgres: { dsn: "x" }, memory: { journal: "j" } } },
      '`backend.memory.journal` (`--data`) goes with the memory store, but `backend.mode` is "postgres"',
    ],
    [{ listen: ":70000" }, "Expected the port of `listen` to be at most 65535, got 70000"],
    [
      { fairQueue: { zombieTimeoutSeconds: 60, maxHoldSeconds: 30 } },
      "Expected `fairQueue.maxHoldSeconds` to be at least `zombieTimeoutSeconds` (60), got 30",
    ],
    [
      { fairQueue: { hosts: { a: { zombieTimeoutSeconds: 7200 } } } },
      "Expected `fairQueue.hosts.a.maxHoldSeconds` to be at least `zombieTimeoutSeconds` (7200), got 3600",
    ],
    [
      { fairQueue: { weightedScheduler: { coldAvgWaitMs: 9, hotAvgWaitMs: 9 } } },
      "Expected `fairQueue.weightedScheduler.hotAvgWaitMs` to be above `coldAvgWaitMs` (9), got 9",
    ],
    [
      { rpc: { releaseFunc: "a" }, fairQueue: { rpc: { releaseFunc: "b" } } },
      '`rpc.releaseFunc` is "a", but `fairQueue.rpc.releaseFunc` is "b"',
    ],
  ])("%j cannot be", (config, problem) => {
    expect(problemsOf({ file: configFile(config) })).toEqual([problem]);
  });

  it("a file that is not there, not JSON or not an object is one", () => {
    expect(problemsOf({ file: "/nowhere/config.json" })).toEqual(["Cannot read /nowhere/config.json: ENOENT"]);
    const torn = configFile('{\n  "auth": { "token": "hush" \n');
    expect(problemsOf({ file: torn })[0]).toMatch(/is not valid JSON/);
    expect(problemsOf({ file: torn })[0]).not.toContain("hush");
    expect(problemsOf({ file: configFile("[]") })[0]).toMatch(/to hold a JSON object/);
  });

  it("never show a secret", () => {
    const file = configFile({
      auth: { token: 12345678, tokens: ["", 98765432] },
      internalApiToken: ["hush"],
      backend: { postgres: { dsn: 5555555 } },
    });
    const text = problemsOf({ file }).join("\n");
    expect(text.split("\n")).toHaveLength(5);
    for (const secret of ["12345678", "98765432", "hush", "5555555"]) expect(text).not.toContain(secret);
  });
});

describe("choices", () => {
  it.each([
    [{}, "memory"],
    [{ backend: { postgres: { dsn: "postgres://h/d" } } }, "postgres"],
    [{ backend: { postgres: { dsn: "postgres://h/d" }, postgrest: { baseUrl: "https://h" } } }, "postgrest"],
    [{ backend: { mode: "memory", postgres: { dsn: "postgres://h/d" } } }, "memory"],
  ])("the backend of %j is %s", (config, mode) => {
    expect(loadConfig({ file: configFile(config) }).settings.backend.mode).toBe(mode);
  });

  it.each([
    [":0", { host: undefined, port: 0 }],
    ["localhost:80", { host: "localhost", port: 80 }],
    ["[::1]:8080", { host: "::1", port: 8080 }],
    ["0.0.0.0:65535", { host: "0.0.0.0", port: 65_535 }],
  ])("listen %s is understood", (listen, address) => {
    expect(loadConfig({ flags: { listen } }).settings.listen).toEqual(address);
  });
});

describe("printing", () => {
  it("shows every key with its origin, and no secret", () => {
    const secrets = [
      "key-one",
      "key-two",
      "signing-key",
      "bearer-key",
      "dsn-key",
      "controller-key",
      "rest-key",
      "listen-key",
    ];
    const file = configFile({
      auth: { enabled: true, token: secrets[0], tokens: [secrets[1]] },
      tokenKeys: [secrets[2]],
      internalApiToken: secrets[3],
      backend: { postgres: { dsn: secrets[4], listenDsn: secrets[7] }, postgrest: { authHeader: secrets[6] } },
      controller: { apiToken: secrets[5] },
    });
    const text = formatPrinted(printedKeys(loadConfig({ file })));
    for (const secret of secrets) expect(text).not.toContain(secret);
    expect(text).toMatch(/^auth\.token +"\[redacted\]" +file config\.json$/m);
    expect(text).toMatch(/^fairQueue\.maxWaitMs +20000 +default$/m);
    expect(text).toMatch(/^fairQueue\.smoothReleaseIntervalMs +– +not set$/m);
  });
});
