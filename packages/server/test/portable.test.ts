import { createHash, createHmac } from "node:crypto";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { endOfTurn } from "@slotkeeper/server/internals";
import {
  Access,
  answering,
  BaseExchange,
  type Body,
  CALLER_ROUTES,
  type CallerContext,
  ConfigError,
  checkFairQueue,
  type Digests,
  type DispatchContext,
  type Exchange,
  type Headers,
  HeldCalls,
  HostSettings,
  hostKeys,
  type Leaving,
  parseBody,
  QueryTokens,
  Refusals,
  RequestLog,
  Router,
} from "@slotkeeper/server/portable";
import { bundle, importedFiles } from "@slotkeeper/testkit/bundle";
import { realClock } from "slotkeeper";
import { expect, test } from "vitest";

const ENTRY = `export * from "@slotkeeper/server/portable";`;
const external = ["node:*", "pg", "pg-*"];

/** Everything that an entry imports, directly or not, as written in the source. */
async function imports(contents: string): Promise<string[]> {
  const files = await importedFiles(contents, import.meta.dirname, { external });
  return Object.values(files).flatMap((file) => file.imports.map((one) => one.original ?? one.path));
}

const isOfNode = (path: string) => /^(?:node:|pg(?:$|\/|-))/.test(path) || path === "@slotkeeper/postgres";

test("the portable entry imports nothing of Node and no database, in its whole module graph", async () => {
  const found = await imports(ENTRY);
  expect(found.length).toBeGreaterThan(30);
  expect(found.filter(isOfNode)).toEqual([]);
  expect(found.filter((path) => !/^(?:\.|@?slotkeeper)/.test(path))).toEqual([]);
});

test("the check finds the imports of an entry for Node", async () => {
  const found = await imports(`export * from "@slotkeeper/server/internals";`);
  expect(found.filter(isOfNode)).toEqual(expect.arrayContaining(["node:fs/promises", "pg", "@slotkeeper/postgres"]));
});

test("the portable entry uses no global of Node", async () => {
  const text = await bundle(ENTRY, import.meta.dirname, { platform: "neutral", external, treeShaking: false });
  expect(text.match(/\b(?:Buffer\.|process\.(?!argv0))/g) ?? []).toEqual([]);
});

test("a configuration of the queue alone is checked by the rules of the engine and for combinations that cannot work", () => {
  checkFairQueue({ maxSlotPerHost: 4, hosts: { "a.example": { maxSlotPerHost: 2 } } });
  const wrong = { maxSlotPerHosts: 4, maxHoldSeconds: 1, zombieTimeoutSeconds: 30, hosts: { "a.*": {} } };
  const problems = [
    expect.stringContaining("did you mean `maxSlotPerHost`?"),
    expect.stringContaining("Expected `fairQueue.maxHoldSeconds` to be at least"),
    expect.stringContaining("it would never match"),
  ];
  expect(problemsOf(wrong)).toEqual(problems);
});

test.each([
  [{ maxHoldSeconds: "long" }, ['Expected `fairQueue.maxHoldSeconds` to be a number above 0, got "long"']],
  [{ hosts: { "a.*": null } }, ['Expected `fairQueue.hosts["a.*"]` to be an object, got null']],
  [{ maxWaitMs: 0 }, ["Expected `fairQueue.maxWaitMs` to be a number above 0, got 0"]],
  [
    { budgets: { a: { limit: 1, perSeconds: 1, default: 2 } } },
    [expect.stringContaining("`fairQueue.budgets.a.default`")],
  ],
])("a mistake is reported once: %j", (wrong, problems) => {
  expect(problemsOf(wrong)).toEqual(problems);
});

function problemsOf(wrong: unknown): readonly string[] {
  try {
    checkFairQueue(wrong as FairQueueConfig);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).problems;
  }
}

/** An exchange without a network. */
class PlainExchange extends BaseExchange implements Exchange {
  readonly id = "one";
  readonly method = "POST";
  readonly path: string;
  readonly query = new URLSearchParams();
  readonly peer = "unknown";
  readonly isLocal = false;
  readonly leaving: Leaving | undefined = undefined;
  readonly #text: string;
  #leave: ((why: Leaving) => void) | undefined;
  status = 0;
  answer: { [key: string]: unknown } = {};

  constructor(name: string, fields: object) {
    super();
    this.path = `/api/v0/fairqueue/${name}`;
    this.#text = JSON.stringify(fields);
  }

  header(): string | undefined {
    return undefined;
  }

  async body(): Promise<Body> {
    return parseBody(this.#text, () => true);
  }

  onLeave(listener: (why: Leaving) => void): void {
    this.#leave = listener;
  }

  leave(): void {
    this.#leave?.("left");
  }

  setHeader(): void {}

  send(status: number, _type: string, text: string | Uint8Array, _headers?: Headers): void {
    this.status = status;
    this.answer = JSON.parse(String(text)) as { [key: string]: unknown };
  }

  empty(status: number): void {
    this.status = status;
  }

  stream(): undefined {
    return undefined;
  }

  fail(): void {
    this.problem("INTERNAL");
  }
}

/** Written as another runtime would: nothing of the service for Node is used. */
function startPortable(): { call: (exchange: PlainExchange) => Promise<PlainExchange>; close: () => void } {
  const digests: Digests = {
    sha256: (text, encoding) => createHash("sha256").update(text).digest(encoding),
    signer: (key) => (text) => createHmac("sha256", key).update(text).digest("base64url"),
    isSame: (given, expected) => given === expected,
    toBase64url: (text) => Buffer.from(text).toString("base64url"),
    fromBase64url: (text) => Buffer.from(text, "base64url").toString(),
  };
  let names = 0;
  const newName = () => `name-${names++}`;
  const fairQueue = { maxSlotPerHost: 1, maxSlotPerIp: -1 };
  const store = new MemoryStore({ clock: realClock });
  const queue = new FairQueue({
    store,
    clock: realClock,
    newSessionId: newName,
    newSecret: newName,
    instance: "object",
    config: fairQueue,
    soon: endOfTurn(),
  });
  const log = { debug() {}, info() {}, warn() {}, error() {}, audit() {}, isOn: () => false };
  const keyOf = hostKeys(digests);
  const refusals = new Refusals(log);
  const settings = { auth: undefined, authHeader: "X-FQ-Auth", internalApiToken: undefined, metricsToken: undefined };
  const context: CallerContext & DispatchContext = {
    queue,
    held: new HeldCalls(
      () => 10,
      (exchange, limit) => refusals.refuse(exchange, "held_polls", limit),
    ),
    refusals,
    requestLog: new RequestLog(log),
    log,
    live: {
      access: new Access({ ...settings, corsOrigins: [] }, digests),
      tokens: new QueryTokens(["key"], digests, keyOf),
      hosts: new HostSettings({ settings: { fairQueue }, origins: new Map() }, keyOf),
      limits: { hosts: 10 },
    },
    telemetry: { hub: { stir() {} } },
    newSessionId: newName,
  };
  const router = new Router<CallerContext & DispatchContext>(CALLER_ROUTES);
  const call = async (exchange: PlainExchange) => {
    await answering(exchange, context, () => router.serve(exchange, context));
    return exchange;
  };
  return { call, close: () => queue.close() };
}

test("the routes of callers serve without a network: a hand-over, a caller that leaves, a problem", async () => {
  const { call, close } = startPortable();
  const acquire = (bucket: string) => new PlainExchange("acquire", { hostname: "a.example", bucket, waitMs: 5_000 });
  const first = await call(acquire("one"));
  expect(first.answer).toMatchObject({ result: "granted", fence: expect.any(Number) });
  const [second, leaving] = [acquire("two"), acquire("three")];
  const served = [call(second), call(leaving)];
  await new Promise(setImmediate);
  leaving.leave();
  await served[1];
  expect(leaving.status).toBe(0);
  const released = await call(new PlainExchange("release", { slotToken: first.answer["slotToken"] }));
  expect(released.answer).toEqual({ result: "ok" });
  await served[0];
  expect(second.answer).toMatchObject({ result: "granted" });
  expect((await call(new PlainExchange("renew", {}))).answer).toMatchObject({ code: "BAD_FIELDS", status: 400 });
  expect((await call(new PlainExchange("nothing", {}))).answer).toMatchObject({ code: "NOT_FOUND" });
  close();
});
