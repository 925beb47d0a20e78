import { fileURLToPath } from "node:url";
import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { ConfigError, formatPrinted, loadConfig, printedKeys, sentenceOf } from "@slotkeeper/server";
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

const ORIGINAL = fileURLToPath(new URL("../../cli/test/drop-in/original-config.json", import.meta.url));

describe("layers", () => {
  it("the defaults are: memory on 127.0.0.1:8080, with and without a file", () => {
    expect(loadConfig({}).settings.listen).toEqual({ host: "127.0.0.1", port: 8080 });
    const { settings, version } = loadConfig({ file: configFile({}, "mine.json") });
    expect([settings.listen, settings.backend, version]).toEqual([
      { host: "127.0.0.1", port: 8080 },
      { mode: "memory", journal: undefined },
      "file:mine.json",
    ]);
  });

  it("with a shared key the default is every address; an explicit address has priority", () => {
    const auth = { enabled: true, token: "a-key-of-16-signs" };
    expect(loadConfig({ file: configFile({ auth }) }).settings.listen).toEqual({ host: undefined, port: 8080 });
    expect(originOf({ file: configFile({ auth }) }, "listen")).toMatchObject({ value: ":8080", origin: "default" });
    const file = configFile({ auth, listen: "127.0.0.1:9" });
    expect(loadConfig({ file }).settings.listen).toEqual({ host: "127.0.0.1", port: 9 });
    const off = configFile({ auth: { ...auth, enabled: false } });
    expect(loadConfig({ file: off }).settings.listen.host).toBe("127.0.0.1");
  });

  it("accepts the original's configuration, and reports which keys have no effect any more", () => {
    const { settings, warnings } = loadConfig({ file: ORIGINAL });
    expect(settings).toMatchObject({
      auth: undefined,
      controller: undefined,
      internalApiToken: undefined,
      listen: { host: undefined, port: 8080 },
      backend: { mode: "postgres" },
      identity: { appName: "slot-handler", env: undefined, instanceId: undefined },
      fairQueue: { minSlotHoldMs: 300, smoothReleaseIntervalMs: 0 },
    });
    expect(warnings.map(sentenceOf)).toEqual([expect.stringMatching(/^`fairQueue\.rpc` has no effect/)]);
  });

  it("an empty string counts as absent, at every depth and in every layer, except in a list", () => {
    const file = configFile({ logLevel: "", auth: { token: "", header: "" }, fairQueue: { maxWaitMs: "", order: "" } });
    const { settings } = loadConfig({ file, flags: { internalApiToken: "", controller: { url: "", apiPrefix: "" } } });
    expect(settings).toMatchObject({ logLevel: "info", authHeader: "X-FQ-Auth", internalApiToken: undefined });
    expect(settings.fairQueue).toMatchObject({ maxWaitMs: 20_000, order: "slot-seconds" });
    expect(problemsOf({ file: configFile({ tokenKeys: [""] }) })).toHaveLength(1);
  });

  it("`notes` and keys that begin with // or _ are remarks, at every depth; hosts may begin with _", () => {
    const file = configFile({
      notes: { anything: [1] },
      "// listen": "why",
      _since: 2024,
      auth: { _why: true },
      fairQueue: { "//": "x", hosts: { "//": "x", _note: "x", "_http.example": { maxSlotPerHost: 2, notes: "x" } } },
    });
    expect(loadConfig({ file }).settings.fairQueue.hosts).toEqual({ "_http.example": { maxSlotPerHost: 2 } });
  });

  it("flags have priority over the environment, that over the file, and that over the defaults, for each key", () => {
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

  it("null counts as absent, in every layer and at every depth", () => {
    const file = configFile({
      listen: null,
      auth: null,
      fairQueue: { maxWaitMs: null, breaker: { openSeconds: null }, hosts: { a: { maxSlotPerHost: null } } },
    });
    const { settings } = loadConfig({ file, flags: { fairQueue: { pollWindowMs: null } } });
    expect(settings.fairQueue).toMatchObject({ maxWaitMs: 20_000, pollWindowMs: 6_000, breaker: { openSeconds: 60 } });
  });

  it("an override for one host keeps the file's value of its other keys", () => {
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

  it("an empty variable counts as absent, and unrelated variables are ignored", () => {
    expect(loadConfig({ environment: { SLOTKEEPER_LISTEN: "", PATH: "/bin" } }).settings.listen.port).toBe(8080);
  });

  it("a value of the wrong type and an unknown variable are problems", () => {
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
      "Unknown variable `SLOTKEEPER_FAIRQUEUE__MAX_WAIT_MS`: did you mean `SLOTKEEPER_FAIR_QUEUE__MAX_WAIT_MS`? (environment)",
    ]);
  });

  it("variables that a cluster creates for a service with a name like slotkeeper are ignored; others are not", () => {
    const environment = {
      SLOTKEEPER_PORT: "tcp://10.0.0.1:8080",
      SLOTKEEPER_SERVICE_HOST: "10.0.0.1",
      SLOTKEEPER_SERVICE_PORT: "8080",
      SLOTKEEPER_SERVICE_PORT_HTTP: "8080",
      SLOTKEEPER_PORT_8080_TCP: "tcp://10.0.0.1:8080",
      SLOTKEEPER_PORT_8080_TCP_PROTO: "tcp",
      SLOTKEEPER_PORT_8080_TCP_PORT: "8080",
      SLOTKEEPER_PORT_8080_TCP_ADDR: "10.0.0.1",
      SLOTKEEPER_WEB_SERVICE_HOST: "10.0.0.1",
      SLOTKEEPER_WEB_PORT: "udp://10.0.0.1:53",
    };
    expect(problemsOf({ environment })).toEqual([]);
    expect(problemsOf({ environment: { SLOTKEEPER_PORT: "8080" } })).toEqual([
      "Unknown variable `SLOTKEEPER_PORT`: did you mean `SLOTKEEPER_LISTEN`? (environment)",
    ]);
  });

  it("variables of the commands are ignored", () => {
    const names = ["URL", "TOKEN", "INTERNAL_TOKEN", "SOCKET", "SLOT", "FENCE", "NAME"];
    const environment = Object.fromEntries(names.map((name) => [`SLOTKEEPER_${name}`, "x"]));
    expect(problemsOf({ environment })).toEqual([]);
  });

  it.each([
    ["MAX_WAIT_MS", "FAIR_QUEUE__MAX_WAIT_MS"],
    ["INTERNAL_APITOKEN", "INTERNAL_API_TOKEN"],
    ["ADDRESS", "LISTEN"],
    ["ULR", "URL"],
  ])("an unknown variable names the nearest one: %s, %s", (given, meant) => {
    expect(problemsOf({ environment: { [`SLOTKEEPER_${given}`]: "1" } })).toEqual([
      `Unknown variable \`SLOTKEEPER_${given}\`: did you mean \`SLOTKEEPER_${meant}\`? (environment)`,
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
        maxSlotPerHost: 1.5,
        hosts: { "*.x": { maxSlots: 1 } },
        breaker: { protectHttpCodes: [42] },
      },
    });
    const problems = problemsOf({ file, flags: { tokenKeys: [] } });
    expect(problems.toSorted()).toEqual(
      [
        "Expected `fairQueue.breaker.protectHttpCodes[0]` to be at least 100, got 42 (file config.json)",
        'Expected `fairQueue.maxWaitMs` to be a number, got "1" (file config.json)',
        "Expected `fairQueue.maxSlotPerHost` to be a whole number, got 1.5 (file config.json)",
        'Expected `listen` to be `host:port` or `:port`, got "8080" (file config.json)',
        'Expected `logLevel` to be one of "debug", "info", "warn", "error", got "loud" (file config.json)',
        "Expected `tokenKeys` to be not empty (flag)",
        "Unknown key `colour` (file config.json)",
        'Unknown key `fairQueue.hosts["*.x"].maxSlots` (file config.json)',
      ].toSorted(),
    );
  });

  it("name a class, a budget, a key or a field with the name of the prototype; hosts, buckets and values may have it", () => {
    const proto = (value: unknown) => JSON.parse(`{ "__proto__": ${JSON.stringify(value)} }`) as object;
    const refused = {
      classes: proto({ weight: 2 }),
      budgets: proto({ limit: 1, perSeconds: 1 }),
      keys: proto({ slots: 1 }),
    };
    const name = (kind: string) => `Expected the name \`fairQueue.${kind}.__proto__\` to be 1 to 32 characters`;
    expect(problemsOf({ file: configFile({ fairQueue: refused }) })).toEqual([
      expect.stringContaining(name("budgets")),
      expect.stringContaining(name("keys")),
      expect.stringContaining(name("classes")),
    ]);
    const keys = { tenant: { slots: 5, for: proto({ slots: 1 }) } };
    const file = configFile({ fairQueue: { keys, hosts: proto({ maxSlotPerHost: 2, weights: proto(3) }) } });
    expect(originOf({ file }, "fairQueue.hosts.__proto__.maxSlotPerHost")).toMatchObject({ value: 2 });
    expect(originOf({ file }, "fairQueue.hosts.__proto__.weights.__proto__")).toMatchObject({ value: 3 });
    expect(originOf({ file }, "fairQueue.keys.tenant.for.__proto__.slots")).toMatchObject({ value: 1 });
    const host = resolveHost(resolveOptions(loadConfig({ file }).settings.fairQueue), "__proto__");
    expect([host.policy.slots, host.weightOf("__proto__"), host.weightOf("other")]).toEqual([2, 3, 1]);
    const bad = configFile({ fairQueue: { hosts: proto({ maxSlotPerHost: 1.5 }) } });
    expect(problemsOf({ file: bad })).toEqual([expect.stringContaining("`fairQueue.hosts.__proto__.maxSlotPerHost`")]);
  });

  it("name a weight of a bucket that is outside the bounds of weights", () => {
    const weights = { a: 0.0001, b: 0.001, c: 1_000_000, d: 1_000_001 };
    expect(problemsOf({ file: configFile({ fairQueue: { hosts: { h: { weights } } } }) })).toEqual([
      "Expected `fairQueue.hosts.h.weights.a` to be at least 0.001, got 0.0001 (file config.json)",
      "Expected `fairQueue.hosts.h.weights.d` to be at most 1000000, got 1000001 (file config.json)",
    ]);
  });

  it("of shape and of combination are reported together, and a combination with invalid keys is not reported again", () => {
    const file = configFile({
      colour: "blue",
      auth: { enabled: true, token: 5 },
      listen: ":70000",
      backend: { mode: "postgres" },
      fairQueue: { zombieTimeoutSeconds: 60, maxHoldSeconds: 30, hosts: { "*x": {} } },
    });
    expect(problemsOf({ file }).toSorted()).toEqual([
      "Expected `auth.token` to be a string (file config.json)",
      "Expected `fairQueue.maxHoldSeconds` to be at least `zombieTimeoutSeconds` (60), got 30",
      'Expected the host of `fairQueue.hosts["*x"]` to be a host name, `*.` and a host name, or "*" alone, got "*x": it would never match',
      "Expected the port of `listen` to be at most 65535, got 70000",
      "Unknown key `colour` (file config.json)",
      '`backend.postgres.dsn` is required because `backend.mode` is "postgres"',
    ]);
  });

  it.each([
    [{ lisen: ":1" }, "Unknown key `lisen`: did you mean `listen`? (file config.json)"],
    [
      { fairQueue: { maxWaitMS: 1 } },
      "Unknown key `fairQueue.maxWaitMS`: did you mean `maxWaitMs`? (file config.json)",
    ],
    [
      { fairQueue: { hosts: { "a.b": { maxSlotsPerHost: 1 } } } },
      'Unknown key `fairQueue.hosts["a.b"].maxSlotsPerHost`: did you mean `maxSlotPerHost`? (file config.json)',
    ],
    [{ maxWaitMs: 1 }, "Unknown key `maxWaitMs`: did you mean `fairQueue.maxWaitMs`? (file config.json)"],
    [{ zebra: 1 }, "Unknown key `zebra` (file config.json)"],
  ])("%j gets a suggestion if a known key is similar", (config, problem) => {
    expect(problemsOf({ file: configFile(config) })).toEqual([problem]);
  });

  it.each(["*example.com", "api.*", "a.*.b", "**", "*.", "*.*.x", "example.com.", "*.example.com."])(
    "a host %j, which no name ever matches, is refused",
    (pattern) => {
      const file = configFile({ fairQueue: { hosts: { [pattern]: { maxSlotPerHost: 1 } } } });
      expect(problemsOf({ file })).toEqual([expect.stringContaining(JSON.stringify(pattern))]);
    },
  );

  it("one host in two spellings is refused", () => {
    const hosts = { "A.example": { maxSlotPerHost: 1 }, "a.example": { maxSlotPerHost: 2 } };
    expect(problemsOf({ flags: { fairQueue: { hosts } } })).toEqual([expect.stringContaining("name the same host")]);
  });

  it.each([
    ["auth.token", { auth: { enabled: true, token: "with a space in it" } }],
    ["auth.tokens[1]", { auth: { enabled: true, tokens: ["0123456789abcdef", "ключ-0123456789abc"] } }],
    ["internalApiToken", { internalApiToken: "line\nbreak-0123456789" }],
    ["controller.apiToken", { controller: { url: "https://c", apiToken: "tab\there" } }],
    ["controller.env", { controller: { env: "a\nb" } }],
    ["backend.postgrest.authHeader", { backend: { postgrest: { authHeader: "Bearer \u0000" } } }],
  ])("%s that no header can contain is refused without showing it", (field, config) => {
    const problems = problemsOf({ file: configFile(config) });
    expect(problems).toEqual([expect.stringContaining(`\`${field}\``)]);
    expect(problems.join("")).not.toMatch(/space in|ключ|there|Bearer/);
  });

  it("keys shorter than 16 characters, and keys without effect, are warnings", () => {
    const { warnings } = loadConfig({
      flags: {
        auth: { enabled: true, token: "short" },
        internalApiToken: "short",
        rpc: { releaseFunc: "f" },
        backend: { postgrest: { authHeader: "Bearer short" } },
      },
    });
    const texts = warnings.map(sentenceOf);
    expect(texts.map((text) => /`(.*?)`/.exec(text)?.[1])).toEqual([
      "rpc",
      "backend.postgrest.authHeader",
      "auth.token",
      "internalApiToken",
      "internalApiToken",
    ]);
    expect(texts.join("")).not.toMatch(/short"|Bearer|postgres:/);
    const [long, other] = ["0123456789abcdef", "fedcba9876543210"];
    expect(loadConfig({ flags: { auth: { enabled: true, token: long }, internalApiToken: other } }).warnings).toEqual(
      [],
    );
  });

  it("are all listed, even if there are many", () => {
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`unknown${index}`, index]));
    expect(problemsOf({ file: configFile(many) })).toHaveLength(40);
  });

  it("names that are not allowed are problems besides those of what they name", () => {
    const budgets = { slots: { limit: 1 }, A: { limit: 1, perSeconds: 1 } };
    const keys = { B: { slots: 0 } };
    const classes = { C: { weight: 0 }, "a-b": {} };
    const hosts = { h: { budgets: { D: {} } } };
    const problems = problemsOf({ file: configFile({ fairQueue: { budgets, keys, classes, hosts } }) });
    const about = problems.map((problem) => /`(.*?)`/.exec(problem)?.[1] ?? "");
    expect(about.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      "fairQueue.budgets.A",
      "fairQueue.budgets.slots",
      "fairQueue.budgets.slots.perSeconds",
      "fairQueue.classes.C",
      "fairQueue.classes.C.weight",
      "fairQueue.hosts.h.budgets.D",
      "fairQueue.hosts.h.budgets.D.limit",
      "fairQueue.hosts.h.budgets.D.perSeconds",
      "fairQueue.keys.B",
      "fairQueue.keys.B.slots",
    ]);
  });

  it.each([
    [{ auth: { enabled: true } }, "`auth.token` or `auth.tokens` is required because `auth.enabled` is true"],
    [{ backend: { mode: "postgres" } }, '`backend.postgres.dsn` is required because `backend.mode` is "postgres"'],
    [
      { backend: { mode: "postgrest" } },
      '`backend.postgrest.baseUrl` is required because `backend.mode` is "postgrest"',
    ],
    [
      { backend: { postgrest: { baseUrl: "https://user:word@h" } } },
      "`backend.postgrest.baseUrl` cannot be used. Expected `baseUrl` to be the http or https address of a PostgREST server without user and password: send credentials as `authHeader`",
    ],
    [
      { backend: { postgres: { dsn: "postgres://u:hush@h/d", listenDsn: "host=h sslmode=bogus" } } },
      `\`backend.postgres.listenDsn\` cannot be used. Expected the dsn to be like postgres://user:password@host:5432/database, but: its sslmode is none of disable, prefer, require, verify-ca, verify-full (the dsn is not shown, because it may contain a password)`,
    ],
    [
      { backend: { postgres: { dsn: "postgres://h/d" }, memory: { journal: "j" } } },
      '`backend.memory.journal` (`--data`) needs the memory store, but `backend.mode` is "postgres"',
    ],
    [{ listen: ":70000" }, "Expected the port of `listen` to be at most 65535, got 70000"],
    [
      { shutdown: { graceMs: 12_000 } },
      "Expected `shutdown.deadlineMs` to be at least `shutdown.graceMs` (12000), got 10000",
    ],
    [
      { fairQueue: { order: "budget:tokens" } },
      'Expected `fairQueue.order` to name a budget of the host, got "budget:tokens"',
    ],
    [
      { fairQueue: { hosts: { a: { budgets: { tokens: { limit: 1, perSeconds: 1, default: 2 } } } } } },
      "Expected `fairQueue.hosts.a.budgets.tokens.default` to be a number from 0 to `burst`, got 2",
    ],
    [
      { fairQueue: { classes: { chat: { floor: 5 } } } },
      "Expected the floors of `fairQueue.classes` to sum up to less than the slots (5), got 5",
    ],
    [
      { fairQueue: { classes: { chat: { floor: 4 } }, hosts: { a: { maxSlotPerHost: 4 } } } },
      "Expected the floors of `fairQueue.hosts.a.classes` to sum up to less than the slots (4), got 4",
    ],
    [
      {
        fairQueue: {
          budgets: { tokens: { limit: 1, perSeconds: 1 } },
          classes: { chat: { floor: 1 } },
          hosts: { a: { order: "budget:tokens" } },
        },
      },
      'Expected `fairQueue.hosts.a.classes` to have no `floor` with the order "budget:tokens"',
    ],
    [
      { fairQueue: { classes: { Chat: {} } } },
      "Expected the name `fairQueue.classes.Chat` to be 1 to 32 characters of a-z, 0-9, _ and -, and begin with one of a-z",
    ],
    [
      { fairQueue: { zombieTimeoutSeconds: 60, maxHoldSeconds: 30 } },
      "Expected `fairQueue.maxHoldSeconds` to be at least `zombieTimeoutSeconds` (60), got 30",
    ],
    [
      { fairQueue: { hosts: { a: { zombieTimeoutSeconds: 7200 } } } },
      "Expected `fairQueue.hosts.a.maxHoldSeconds` to be at least `zombieTimeoutSeconds` (7200), got 3600",
    ],
  ])("%j is refused with one problem", (config, problem) => {
    expect(problemsOf({ file: configFile(config) })).toEqual([problem]);
  });

  it.each([
    "https://app.example/",
    "https://app.example/path",
    "app.example",
    "https://App.example",
    "https://*.example",
    "https://app.example:443",
    "http://app.example:80",
    "https://a,https://b",
    "https://user@app.example",
    "null",
    "",
  ])("%j is not an origin", (origin) => {
    const [problem, ...more] = problemsOf({ file: configFile({ cors: { origins: ["https://app.example", origin] } }) });
    expect(more).toEqual([]);
    expect(problem).toMatch(/^Expected `cors\.origins\[1\]` to be `\*`, or an origin as a browser sends it/);
    expect(problem).toContain(`, got ${JSON.stringify(origin)} (file config.json)`);
  });

  it("do not include origins as browsers send them", () => {
    const origins = ["*", "https://app.example", "http://localhost:3000", "http://[::1]:8080", "app://local"];
    expect(loadConfig({ file: configFile({ cors: { origins } }) }).settings.corsOrigins).toEqual(origins);
  });

  it("include a file that is missing, not JSON or not an object", () => {
    expect(problemsOf({ file: "/nowhere/config.json" })).toEqual([
      "Cannot read /nowhere/config.json: it does not exist",
    ]);
    const torn = configFile('{\n  "auth": { "token": "hush" \n');
    expect(problemsOf({ file: torn })[0]).toMatch(/is not valid JSON/);
    expect(problemsOf({ file: torn })[0]).not.toContain("hush");
    expect(problemsOf({ file: configFile("[]") })[0]).toMatch(/to contain a JSON object/);
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

describe("zeros", () => {
  const DEFAULTS = loadConfig({}).settings.fairQueue;
  /** Keys of the original for which a value of 0 or less means the default. */
  const OR_LESS = [
    "maxWaitMs",
    "pollIntervalMs",
    "pollWindowMs",
    "sessionIdleSeconds",
    "maxSlotPerHost",
    "zombieTimeoutSeconds",
  ];
  const SCHEDULER = [
    "hotPendingFactor",
    "hotPendingMin",
    "coldAvgWaitMs",
    "hotAvgWaitMs",
    "maxProbesPerCycle",
    "baseWeight",
    "weightPerWait",
  ];
  const all = (keys: readonly string[], value: number) => Object.fromEntries(keys.map((key) => [key, value]));
  const codesOf = (config: object) =>
    loadConfig({ file: configFile(config) })
      .warnings.filter(({ code }) => code === "ZERO_IS_DEFAULT")
      .map(sentenceOf);

  it.each([0, -1])("of the original (%d) mean the default, and one warning lists them", (value) => {
    const fairQueue = {
      ...all(OR_LESS, value),
      cleanup: { queueDepthZombieTtlSeconds: value },
      weightedScheduler: all(SCHEDULER, value),
    };
    expect(loadConfig({ file: configFile({ fairQueue }) }).settings.fairQueue).toEqual(DEFAULTS);
    const [warning, ...more] = codesOf({ fairQueue });
    expect(more).toEqual([]);
    for (const key of [...OR_LESS, ...SCHEDULER, "queueDepthZombieTtlSeconds"]) expect(warning).toContain(`${key}\``);
  });

  it("mean the default for `maxSlotPerIp` and `globalMaxWaiters` only at 0; negative is no limit", () => {
    const keys = ["maxSlotPerIp", "globalMaxWaiters"];
    expect(loadConfig({ file: configFile({ fairQueue: all(keys, 0) }) }).settings.fairQueue).toEqual(DEFAULTS);
    expect(codesOf({ fairQueue: all(keys, 0) })).toHaveLength(1);
    const { fairQueue } = loadConfig({ file: configFile({ fairQueue: all(keys, -1) }) }).settings;
    expect(fairQueue).toMatchObject({ maxSlotPerIp: -1, globalMaxWaiters: -1 });
    expect(codesOf({ fairQueue: all(keys, -1) })).toEqual([]);
  });

  it("win over a weaker layer, come from variables too, and leave an override to the value of all hosts", () => {
    const file = configFile({ fairQueue: { maxWaitMs: 7, maxSlotPerHost: 7, hosts: { a: { maxSlotPerHost: 0 } } } });
    const environment = { SLOTKEEPER_FAIR_QUEUE__MAX_WAIT_MS: "0" };
    const { settings, warnings } = loadConfig({ file, environment });
    expect(settings.fairQueue).toMatchObject({ maxWaitMs: 20_000, maxSlotPerHost: 7, hosts: { a: {} } });
    expect(sentenceOf(warnings[0] as (typeof warnings)[number])).toMatch(
      /^`fairQueue\.hosts\.a\.maxSlotPerHost` \(file config\.json\), `fairQueue\.maxWaitMs` \(environment\) are 0/,
    );
  });

  it("turn the cleanup off, and other keys refuse them or keep their own meaning", () => {
    const cleanup = (intervalSeconds: number) => ({ fairQueue: { cleanup: { intervalSeconds } } });
    expect(loadConfig({ file: configFile(cleanup(0)) }).settings.cleanupEveryMs).toBeUndefined();
    expect(loadConfig({ file: configFile(cleanup(0.5)) }).settings.cleanupEveryMs).toBe(500);
    expect(problemsOf({ file: configFile(cleanup(-1)) })).toHaveLength(1);
    expect(problemsOf({ file: configFile({ fairQueue: { maxHoldSeconds: 0 } }) })).toHaveLength(1);
    expect(problemsOf({ file: configFile({ fairQueue: { pollIntervalMs: 0.5 } }) })).toHaveLength(1);
    expect(codesOf({ fairQueue: { maxWaitersPerHost: 0, smoothReleaseIntervalMs: 0, minSlotHoldMs: 0 } })).toEqual([]);
  });
});

describe("warnings instead of problems", () => {
  const warningsOf = (config: object) => loadConfig({ file: configFile(config) }).warnings.map(sentenceOf);

  it("`hotAvgWaitMs` that is not above `coldAvgWaitMs`", () => {
    const warnings = warningsOf({ fairQueue: { weightedScheduler: { coldAvgWaitMs: 9, hotAvgWaitMs: 9 } } });
    expect(warnings).toEqual([expect.stringMatching(/hotAvgWaitMs` \(9\) is not above `coldAvgWaitMs` \(9\)/)]);
  });

  it("`controller.url` without a token: the service runs without a controller", () => {
    const config = { controller: { url: "https://controller.example" } };
    expect(loadConfig({ file: configFile(config) }).settings.controller).toBeUndefined();
    expect(warningsOf(config)).toEqual([
      expect.stringMatching(/`controller\.apiToken` is not: the service runs without/),
    ]);
  });

  it("an unknown key of the controller; its other mistakes stay problems", () => {
    const tree = { colour: "blue", fairQueue: { maxWaitMS: 1, maxSlotPerHost: 3 } };
    const { settings, warnings } = loadConfig({}, { version: "7", tree });
    expect(settings.fairQueue.maxSlotPerHost).toBe(3);
    expect(warnings.map(({ found }) => found)).toEqual([
      "unknown key `colour` (controller)",
      "unknown key `fairQueue.maxWaitMS`: did you mean `maxWaitMs`? (controller)",
    ]);
    expect(() => loadConfig({}, { version: "7", tree: { ...tree, logLevel: "loud" } })).toThrow(ConfigError);
  });
});

describe("`leaseSeconds`", () => {
  it("is another name of `zombieTimeoutSeconds`, in every layer and in overrides", () => {
    const file = configFile({ fairQueue: { leaseSeconds: 60, hosts: { a: { leaseSeconds: 90 } } } });
    const sources = { file };
    expect(loadConfig(sources).settings.fairQueue).toMatchObject({
      zombieTimeoutSeconds: 60,
      hosts: { a: { zombieTimeoutSeconds: 90 } },
    });
    expect(loadConfig(sources).settings.fairQueue).not.toHaveProperty("leaseSeconds");
    const environment = { SLOTKEEPER_FAIR_QUEUE__LEASE_SECONDS: "40" };
    expect(originOf({ file, environment }, "fairQueue.zombieTimeoutSeconds")).toMatchObject({
      value: 40,
      origin: "environment",
    });
    expect(originOf({ file }, "fairQueue.leaseSeconds")).toBeUndefined();
  });

  it("is named as written in a problem, and must agree with the other name", () => {
    expect(problemsOf({ file: configFile({ fairQueue: { leaseSeconds: "x" } }) })).toEqual([
      'Expected `fairQueue.leaseSeconds` to be a number, got "x" (file config.json)',
    ]);
    const both = (leaseSeconds: number) => ({ fairQueue: { leaseSeconds, zombieTimeoutSeconds: 30 } });
    expect(problemsOf({ file: configFile(both(30)) })).toEqual([]);
    expect(problemsOf({ file: configFile(both(31)) })).toEqual([
      "`fairQueue.leaseSeconds` and `fairQueue.zombieTimeoutSeconds` are the same key, but have different values (file config.json)",
    ]);
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
      "postgres://dsn-key",
      "controller-key",
      "rest-key",
      "postgres://listen-key",
    ];
    const file = configFile({
      auth: { enabled: true, token: secrets[0], tokens: [secrets[1]] },
      tokenKeys: [secrets[2]],
      internalApiToken: secrets[3],
      backend: { postgres: { dsn: secrets[4], listenDsn: secrets[7] }, postgrest: { authHeader: secrets[6] } },
      controller: { apiToken: secrets[5] },
    });
    const text = formatPrinted(printedKeys(loadConfig({ file })));
    for (const secret of secrets) expect(text).not.toContain(secret.replace("postgres://", ""));
    expect(text).toMatch(/^auth\.token +"\[redacted\]" +file config\.json$/m);
    expect(text).toMatch(/^fairQueue\.maxWaitMs +20000 +default$/m);
    expect(text).toMatch(/^fairQueue\.smoothReleaseIntervalMs +– +not set$/m);
  });
});
