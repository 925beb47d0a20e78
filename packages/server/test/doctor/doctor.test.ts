import { once } from "node:events";
import { appendFileSync, chmodSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { MemoryStore } from "@slotkeeper/queue";
import { CHECKS, type Diagnosis, diagnose, type ServiceInit } from "@slotkeeper/server";
import { FINDING_CODES } from "@slotkeeper/server/internals";
import { describe, expect, it, onTestFinished } from "vitest";
import { configFile, newFolder, startFixture, stopFixture } from "../service-fixture.ts";
import { diagnosisOf, finding, reported } from "./findings.ts";

const KEY = "a-shared-key-of-some-length";
const TOKENS = { limit: 1_000, perSeconds: 60 } as const;

describe("the configuration", () => {
  it("of a valid set-up gives nothing to report, and every check reports what it found", async () => {
    const diagnosis = await diagnosisOf({ auth: { enabled: true, token: KEY }, internalApiToken: `${KEY}-2` });
    expect(diagnosis).toMatchObject({ store: "memory", severity: "ok", skipped: [] });
    expect(diagnosis.findings.map(({ check }) => check)).toEqual([
      "configuration",
      "address",
      "service",
      "keys",
      "limits",
      "journal",
    ]);
    for (const { code, found } of diagnosis.findings) expect([code, found.endsWith(".")]).toEqual(["OK", true]);
    expect(JSON.stringify(diagnosis)).not.toContain(KEY);
  });

  it("that is invalid lists every problem, and the rest as not checked", async () => {
    const file = configFile({ lisen: ":1", fairQueue: { maxHoldSeconds: 5, zombieTimeoutSeconds: 30 } });
    const diagnosis = await diagnose({ file });
    expect(reported(diagnosis)).toEqual(["problem CONFIG_INVALID", "problem CONFIG_INVALID"]);
    expect(diagnosis.findings.map(({ found }) => found).join("\n")).toMatch(/`listen`[\s\S]*zombieTimeoutSeconds/);
    expect(diagnosis).toMatchObject({ store: undefined, severity: "problem" });
    expect(diagnosis.skipped).toEqual(CHECKS.slice(1));
  });

  it("whose control plane does not answer reports that the local file would be used", async () => {
    const controller = { url: "http://127.0.0.1:1", apiToken: KEY };
    const diagnosis = await diagnosisOf({ controller });
    expect(finding(diagnosis, "CONTROLLER_UNREACHABLE").found).toContain("http://127.0.0.1:1");
  });

  const auth = (more: object) => ({ auth: { enabled: true, token: KEY, ...more } });
  it.each([
    ["problem OPEN_TO_EVERYONE", { listen: ":0", internalApiToken: KEY }],
    ["warning NO_INTERNAL_TOKEN", { listen: "0.0.0.0:0", ...auth({}) }],
    ["problem SHARED_KEY_NOT_ASKED", auth({ enabled: false })],
    ["problem HEADER_RESERVED", auth({ header: "Host" })],
    ["warning HEADER_UNDERSCORE", auth({ header: "X_FQ_Auth" })],
    ["problem KEY_TOO_LONG", auth({ token: KEY.repeat(200) })],
    ["warning SHORT_KEY", auth({ token: "guessed" })],
    ["warning SAME_KEY", { ...auth({}), internalApiToken: KEY }],
    ["warning UNUSED_KEY", { rpc: { releaseFunc: "f" } }],
    ["warning CONTROLLER_NOT_ENCRYPTED", { controller: { url: "http://192.0.2.1:1", apiToken: KEY } }],
  ])("%s", async (expected, config) => {
    const diagnosis = await diagnosisOf(config);
    // The controller of these tests does not answer.
    expect(reported(diagnosis).filter((line) => line !== "warning CONTROLLER_UNREACHABLE")).toEqual([expected]);
    finding(diagnosis, expected.split(" ")[1] ?? "");
    expect(JSON.stringify(diagnosis)).not.toContain(KEY);
  });

  it.each([
    [{ maxSlotPerIp: 6 }, "`fairQueue.maxSlotPerIp` (6) is above `maxSlotPerHost` (5)"],
    [{ maxWaitersPerIp: 60 }, "`fairQueue.maxWaitersPerIp` (60) is above `maxWaitersPerHost` (50)"],
    [{ zombieTimeoutSeconds: 1 }, "`fairQueue.zombieTimeoutSeconds` (1) is not above `collectMs` (1000 ms)"],
    [{ minSlotHoldMs: 31_000 }, "`fairQueue.minSlotHoldMs` (31000) is longer than `zombieTimeoutSeconds` (30)"],
    [{ smoothReleaseIntervalMs: 31_000 }, "`fairQueue.smoothReleaseIntervalMs` (31000) is longer than"],
    [{ ipCooldownSeconds: 20 }, "`fairQueue.ipCooldownSeconds` (20) is not below `fairQueue.maxWaitMs` (20000)"],
    [{ maxWaitMs: 400 }, "`fairQueue.maxWaitMs` (400) is below `pollIntervalMs` (500)"],
    [{ sessionIdleSeconds: 0.5 }, "`fairQueue.sessionIdleSeconds` (0.5) is below `collectMs` (1000)"],
    [{ globalMaxWaiters: 30_000 }, "`limits.heldPolls` (20000) is below `fairQueue.globalMaxWaiters` (30000)"],
    [
      { budgets: { tokens: { limit: 10, perSeconds: 60, burst: 50, default: 5 } } },
      "`fairQueue.budgets.tokens` needs 30000 ms to refill its `default` (5), longer than `fairQueue.maxWaitMs` (20000)",
    ],
    [
      { weightedScheduler: { enabled: true }, hosts: { "a.example": { budgets: { tokens: TOKENS } } } },
      '`fairQueue.hosts["a.example"].budgets` turns off `fairQueue.weightedScheduler`',
    ],
    [
      { weightedScheduler: { enabled: true }, maxSlotPerIp: -1, keys: { tenant: { slots: 2 } } },
      "`fairQueue.keys` turns off `fairQueue.weightedScheduler`",
    ],
    [
      { weightedScheduler: { enabled: true }, classes: { chat: { weight: 2 } } },
      "`fairQueue.classes` turns off `fairQueue.weightedScheduler`",
    ],
    [
      { hosts: { "a.example": { keys: { tenant: { slots: 2 } } } } },
      '`fairQueue.hosts["a.example"].maxSlotPerIp` (1) limits a bucket to fewer slots than `keys.tenant` limits a value',
    ],
    [
      { maxSlotPerIp: -1, keys: { tenant: { budgets: { tokens: { limit: 1, perSeconds: 60 } } } } },
      "`fairQueue.keys.tenant.budgets.tokens` needs 60000 ms to refill its `default` (1)",
    ],
    [{ hosts: { "a.example": { maxSlotPerHost: 1, maxSlotPerIp: 2 } } }, '`fairQueue.hosts["a.example"].maxSlotPerIp`'],
  ])("limits that do not work together: %j", async (fairQueue, found) => {
    const conflict = finding(await diagnosisOf({ fairQueue }), "LIMITS_CONFLICT");
    expect(conflict).toMatchObject({ check: "limits", severity: "warning" });
    expect(conflict.found).toMatch(new RegExp(`^${found.replaceAll(/[[\]().*]/g, "\\$&")}`));
  });

  it.each([
    [
      { tokens: { ...TOKENS, burst: 10, default: 11 } },
      "Expected `fairQueue.budgets.tokens.default` to be a number from 0 to `burst`, got 11.",
    ],
    [{ slots: TOKENS }, "Expected the name `fairQueue.budgets.slots` to be another one: the header RateLimit has it"],
    [{ Tokens: TOKENS }, "Expected the name `fairQueue.budgets.Tokens` to be 1 to 32 characters"],
    [
      { tokens: { limit: 0, perSeconds: 1 } },
      "Expected `fairQueue.budgets.tokens.limit` to be at least 0.000001, got 0 (flag).",
    ],
  ])("budgets that cannot work are problems of the configuration, each once: %j", async (budgets, found) => {
    const diagnosis = await diagnosisOf({ fairQueue: { budgets } });
    expect(reported(diagnosis)).toEqual(["problem CONFIG_INVALID"]);
    expect(finding(diagnosis, "CONFIG_INVALID").found.startsWith(found)).toBe(true);
  });

  it.each([
    [{ limit: 1e-305, perSeconds: 1 }, "limit` to be at least 0.000001"],
    [{ limit: 1, perSeconds: 1e308 }, "perSeconds` to be at most 31536000"],
    [{ limit: 1, perSeconds: 1, burst: 1e300 }, "burst` to be at most 1000000000000"],
  ])("a budget outside its bounds is a problem: %j", async (tokens, found) => {
    const diagnosis = await diagnosisOf({ fairQueue: { keys: { tenant: { budgets: { tokens } } } } });
    expect(finding(diagnosis, "CONFIG_INVALID").found).toContain(found);
  });

  it.each([
    [{ Tenant: { slots: 1 } }, "Expected the name `fairQueue.keys.Tenant` to be 1 to 32 characters"],
    [{ bucket: { slots: 1 } }, "Expected `fairQueue.keys.bucket` to have budgets only"],
    [{ tenant: { slots: 1, shadow: "yes" } }, "Expected `fairQueue.keys.tenant.shadow` to be true or false"],
  ])("keys that cannot work are problems of the configuration: %j", async (keys, found) => {
    expect(finding(await diagnosisOf({ fairQueue: { keys } }), "CONFIG_INVALID").found).toContain(found);
  });

  it("limits in shadow mode conflict with nothing", async () => {
    const tokens = { limit: 1, perSeconds: 60 };
    const keys = { tenant: { slots: 2, shadow: true, budgets: { tokens } } };
    const diagnosis = await diagnosisOf({ fairQueue: { weightedScheduler: { enabled: true }, keys } });
    expect(reported(diagnosis)).toEqual([]);
  });

  it("budgets of a named semaphore have no effect", async () => {
    const hosts = { "sem:jobs": { budgets: { tokens: TOKENS } } };
    const unused = finding(await diagnosisOf({ fairQueue: { hosts } }), "UNUSED_KEY");
    expect(unused.found).toBe('`fairQueue.hosts["sem:jobs"].budgets` has no effect.');
  });

  it("a host's own limits are checked together with those it inherits, and inherited problems are reported once", async () => {
    const hosts = { "a.example": { maxSlotPerHost: 2 }, "b.example": { minSlotHoldMs: 10 } };
    const { findings } = await diagnosisOf({ fairQueue: { maxSlotPerIp: 4, hosts } });
    const conflicts = findings.filter(({ code }) => code === "LIMITS_CONFLICT").map(({ found }) => found);
    expect(conflicts).toEqual([
      expect.stringContaining('hosts["a.example"].maxSlotPerIp` (4) is above `maxSlotPerHost` (2)'),
    ]);
  });
});

describe("the address", () => {
  const at = (url: string, more: object = {}) => diagnosisOf({ listen: new URL(url).host, ...more });
  const serviceOf = ({ findings }: Diagnosis) => findings.find(({ check }) => check === "service")?.found;

  async function listening(answer: (socket: Socket) => void): Promise<string> {
    const server = createServer(answer).listen(0, "127.0.0.1");
    await once(server, "listening");
    server.on("connection", (socket) => onTestFinished(() => void socket.destroy()));
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  it("of a running service is fine, and its version is shown", async () => {
    const { url } = await startFixture();
    const diagnosis = await at(url);
    expect(diagnosis.severity).toBe("ok");
    expect(serviceOf(diagnosis)).toMatch(/^One runs at 127\.0\.0\.1, port \d+, version \d+\.\d+\.\d+, and is ready\.$/);
  });

  it("of a running service at which no request sends a key warns, unless one does or the host is idle", async () => {
    const fairQueue = { maxSlotPerIp: -1, keys: { tenant: { slots: 5 }, bucket: { budgets: { tokens: TOKENS } } } };
    const fixture = await startFixture({ config: { fairQueue, internalApiToken: KEY } });
    const now = () => at(fixture.url, { fairQueue, internalApiToken: KEY });
    expect(reported(await now())).toEqual([]);
    await fixture.take();
    const { found } = finding(await now(), "KEY_NOT_SENT");
    expect(found).toBe("No request that now holds a slot or waits at example.com sends the key tenant.");
    expect(reported(await at(fixture.url, { fairQueue }))).toEqual([]);
    await fixture.take({ keys: { tenant: "acme" } });
    expect(reported(await now())).toEqual([]);
  });

  it("of a running service warns if a live limit has no room for floors that a reload brought", async () => {
    const configOf = (floor: number) => ({
      internalApiToken: KEY,
      fairQueue: { maxSlotPerHost: 10, maxSlotPerIp: -1, classes: { chat: { floor } } },
    });
    const listen = "127.0.0.1:0";
    const file = configFile({ ...configOf(1), listen });
    const fixture = await startFixture({ file });
    await fixture.take();
    const headers = { authorization: `Bearer ${KEY}` };
    await fixture.request("POST", "/api/v0/hosts/example.com", { headers, body: '{ "maxSlotPerHost": 3 }' });
    expect(reported(await at(fixture.url, configOf(1)))).toEqual([]);
    writeFileSync(file, JSON.stringify({ ...configOf(3), listen }));
    await fixture.service.refresh();
    const { found } = finding(await at(fixture.url, configOf(3)), "FLOORS_IGNORED");
    expect(found).toBe("The floors of the classes of example.com sum up to 3, and its live limit is 3 slots.");
  });

  it("at which nothing listens is free", async () => {
    const fixture = await startFixture();
    await stopFixture(fixture);
    const diagnosis = await at(fixture.url);
    expect(diagnosis.severity).toBe("ok");
    expect(serviceOf(diagnosis)).toMatch(/^None runs at 127\.0\.0\.1, port \d+\. The port is free\.$/);
  });

  it("of a service that is not ready reports why", async () => {
    const open: NonNullable<ServiceInit["open"]> = async (_backend, clock) => ({
      store: new MemoryStore({ clock }),
      description: "the test's own",
      tokenKeys: ["a key"],
      health: () => ({ isReady: false, reason: "STORE_FULL", detail: "the disk is full", error: undefined }),
      close: async () => {},
    });
    const { url } = await startFixture({ open });
    const { severity, found } = finding(await at(url), "SERVICE_NOT_READY");
    expect([severity, found]).toEqual(["problem", expect.stringContaining("the disk is full")]);
  });

  it.each([
    ["HTTP", (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")],
    ["another protocol", (socket: Socket) => socket.end("220 mail.example ready\r\n")],
    ["nothing", (socket: Socket) => socket.end()],
    ["never", () => {}],
  ])("with another program that answers %s is a problem", async (_, answer) => {
    const diagnosis = await at(await listening(answer));
    expect(finding(diagnosis, "PORT_IN_USE")).toMatchObject({ check: "service", severity: "problem" });
  });

  it("that the machine does not have is a problem", async () => {
    const diagnosis = await diagnosisOf({
      listen: "192.0.2.1:8080",
      internalApiToken: KEY,
      auth: { enabled: true, token: `${KEY}2` },
    });
    expect(finding(diagnosis, "ADDRESS_UNUSABLE").found).toContain("this machine does not have this address");
  });
});

describe("the journal", () => {
  const withJournal = (journal: string, more: object = {}) =>
    diagnosisOf({ backend: { memory: { journal } }, ...more });

  /** A journal that a service has written. */
  async function written(): Promise<string> {
    const journal = join(newFolder(), "slots.journal");
    const fixture = await startFixture({ config: { backend: { memory: { journal } } } });
    await fixture.take({});
    await stopFixture(fixture);
    return journal;
  }

  it("that is valid and free gives nothing to report, and is not changed", async () => {
    const journal = await written();
    const before = readFileSync(journal);
    const diagnosis = await withJournal(journal);
    expect(reported(diagnosis)).toEqual([]);
    expect(diagnosis.findings.at(-1)?.found).toMatch(/bytes, undamaged, free\.$/);
    expect(readFileSync(journal).equals(before)).toBe(true);
  });

  it("that is damaged is a problem, with the position of the damage", async () => {
    const journal = await written();
    const bytes = readFileSync(journal);
    bytes[20] = (bytes[20] ?? 0) ^ 0xff;
    writeFileSync(journal, bytes);
    const damaged = finding(await withJournal(journal), "JOURNAL_DAMAGED");
    expect(damaged).toMatchObject({ severity: "problem", found: expect.stringContaining("damaged at byte 0") });
  });

  it("of a different format is a problem that names both formats, without the advice to cut it", async () => {
    for (const [format, words] of [
      [3, "a newer version of slotkeeper (format 3, this one reads up to 2)"],
      [1, "an older version of slotkeeper (format 1, this one reads only 2)"],
    ] as const) {
      const journal = join(newFolder(), "slots.journal");
      writeFileSync(journal, `slotkeeper-journal ${format}\nwhatever that version writes`);
      const { severity, found, fix } = finding(await withJournal(journal), "JOURNAL_FORMAT");
      expect(severity).toBe("problem");
      expect(found).toContain(words);
      expect(found + fix).not.toMatch(/cut|damaged/);
    }
  });

  it("that is a file of another program is a problem, without the advice to cut it", async () => {
    const journal = join(newFolder(), "notes.txt");
    writeFileSync(journal, "my notes\n");
    const { found, fix } = finding(await withJournal(journal), "JOURNAL_PATH");
    expect(found).toContain("not a slotkeeper journal");
    expect(found + fix).not.toMatch(/cut|damaged/);
  });

  it("with an incomplete last record gives nothing to report, but a note that the next start drops it", async () => {
    const journal = await written();
    appendFileSync(journal, "=9 17000");
    const diagnosis = await withJournal(journal);
    expect(reported(diagnosis)).toEqual([]);
    expect(diagnosis.findings.at(-1)?.found).toContain("last record is incomplete (8 bytes)");
  });

  it("in use by the service at the configured address is fine; by any other process it is a warning", async () => {
    const journal = join(newFolder(), "slots.journal");
    const fixture = await startFixture({ config: { backend: { memory: { journal } } } });
    const own = await withJournal(journal, { listen: new URL(fixture.url).host });
    expect(reported(own)).toEqual([]);
    expect(own.findings.at(-1)?.found).toContain(`in use by process ${process.pid}`);
    const other = await withJournal(journal, { listen: "127.0.0.1:1" });
    expect(finding(other, "JOURNAL_LOCKED").found).toContain(`in use by process ${process.pid}`);
    expect((await fixture.request("GET", "/readyz")).status).toBe(200);
  });

  it("in a folder that does not exist or is not writable is a problem", async () => {
    const missing = await withJournal(join(newFolder(), "no-such-folder", "slots.journal"));
    expect(reported(missing)).toEqual(["problem JOURNAL_UNWRITABLE"]);
    const folder = newFolder();
    chmodSync(folder, 0o555);
    const restore = asOrdinaryUser();
    try {
      expect(reported(await withJournal(join(folder, "slots.journal")))).toEqual(["problem JOURNAL_UNWRITABLE"]);
    } finally {
      restore();
    }
  });

  it("that is not a regular file is a problem", async () => {
    expect(reported(await withJournal(newFolder()))).toEqual(["problem JOURNAL_PATH"]);
  });
});

/** Root may write anywhere. */
function asOrdinaryUser(): () => void {
  if (process.geteuid?.() !== 0) return () => {};
  process.seteuid?.(65_534);
  return () => process.seteuid?.(0);
}

it("every code has a row in the reference, and every row is a code", () => {
  const page = readFileSync(new URL("../../../../docs/reference/doctor.md", import.meta.url), "utf8");
  const documented = [...page.matchAll(/^\| `([A-Z_]+)`/gm)].map(([, code]) => code);
  expect(new Set(documented)).toEqual(new Set(FINDING_CODES.filter((code) => code !== "OK")));
  expect(documented).toHaveLength(new Set(documented).size);
});
