import type { FairQueueConfig } from "@slotkeeper/protocol";
import { MemoryStore, resolveOptions } from "@slotkeeper/queue";
import { newTokenKey } from "@slotkeeper/server/node-crypto";
import { checkFairQueue } from "@slotkeeper/server/portable";
import { CallClock } from "./call-clock.ts";
import { consoleLog } from "./console-log.ts";
import { Directory, type HostReport, REPORT_MS, REPORT_PATH, reportOf } from "./directory.ts";
import { FetchExchange } from "./fetch-exchange.ts";
import { HostRows, StorageSchemaError } from "./host-rows.ts";
import { HostService } from "./host-service.ts";
import { SlotObjects } from "./slot-router.ts";
import { SqlStore } from "./sql-store.ts";
import type { ObjectState, SlotNamespace } from "./workers.ts";

/** Options of `slotObject`. */
export interface SlotObjectOptions {
  /** How often the alarm of an object checks whether its host is still in use, in seconds. Default: an hour. */
  readonly tidySeconds?: number;
}

/** The class of an object, to be extended and exported by a Worker. */
export type SlotObjectClass = new (ctx: ObjectState, env: unknown) => SlotObject;

/** What the runtime calls of an object. */
export interface SlotObject {
  fetch(request: Request): Promise<Response>;
  alarm(): Promise<void>;
}

/**
 * The class of the Durable Objects that keep the slots of hosts: one object for each host, and one that lists them.
 *
 * @param config The section `fairQueue` of `config.json`. Throws a `ConfigError` that lists all its problems, so that a
 * Worker with a wrong configuration does not start.
 * @example
 * ```ts
 * import { slotObject } from "@slotkeeper/cloudflare";
 *
 * export class Slots extends slotObject({ hosts: { "upstream.example.com": { maxSlotPerHost: 4 } } }) {}
 * ```
 */
export function slotObject(config: FairQueueConfig = {}, options: SlotObjectOptions = {}): SlotObjectClass {
  const fairQueue = { ...config };
  checkFairQueue(fairQueue);
  const { tidySeconds = 3600 } = options;
  if (!(tidySeconds > 0 && tidySeconds <= MOST_TIDY_SECONDS))
    throw new RangeError(`Expected \`tidySeconds\` to be above 0 and at most a year, got ${String(tidySeconds)}`);
  return class extends ObjectOfHost {
    constructor(ctx: ObjectState, env: unknown) {
      super(ctx, env, { fairQueue, tidyMs: tidySeconds * 1000 });
    }
  };
}

const MOST_TIDY_SECONDS = 31_536_000;

interface Setup {
  readonly fairQueue: FairQueueConfig;
  readonly tidyMs: number;
}

/** What an object has in memory while it serves a host. */
interface OpenHost {
  readonly service: HostService;
  readonly store: SqlStore;
  readonly rows: HostRows;
}

class ObjectOfHost implements SlotObject {
  readonly #ctx: ObjectState;
  readonly #env: unknown;
  readonly #setup: Setup;
  readonly #calls = new CallClock();
  #host: OpenHost | undefined;
  #directory: { readonly service: HostService; readonly hosts: Directory } | undefined;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(ctx: ObjectState, env: unknown, setup: Setup) {
    this.#ctx = ctx;
    this.#env = env;
    this.#setup = setup;
  }

  async fetch(request: Request): Promise<Response> {
    const exchange = new FetchExchange(request, true);
    if (new URL(request.url).hostname === "directory") return this.#serveDirectory(exchange, request);
    try {
      const response = await this.#open().service.serve(exchange);
      this.#reportSoon();
      return response;
    } catch (error) {
      if (!(error instanceof StorageSchemaError)) throw error;
      consoleLog.error("the storage cannot be read", { error });
      exchange.problem("UNAVAILABLE", error.message, { headers: { "Retry-After": 1 } });
      return exchange.response;
    }
  }

  /** Only tidies: forgets a host that is not in use, and then deletes the storage. */
  async alarm(): Promise<void> {
    const { service, store } = this.#open();
    const { storage } = this.#ctx;
    service.begin();
    try {
      const { idleMs } = resolveOptions(this.#setup.fairQueue);
      const [host] = await store.hostKeys();
      await store.cleanup({ idleMs });
      if ((await store.hostKeys()).length > 0 || this.#calls.calls > 1) {
        await storage.setAlarm(Date.now() + this.#setup.tidyMs);
        return;
      }
      await this.#ctx.blockConcurrencyWhile(async () => {
        await storage.deleteAlarm();
        await storage.deleteAll();
        service.queue.close();
        this.#host = undefined;
      });
      if (host !== undefined) await this.#report({ host, isGone: true });
    } finally {
      this.#calls.end();
    }
  }

  /** The whole book is restored here, before the first call is decided (SQL3). */
  #open(): OpenHost {
    if (this.#host !== undefined) return this.#host;
    const { storage } = this.#ctx;
    const { fairQueue, tidyMs } = this.#setup;
    const onCreated = () => void storage.setAlarm(Date.now() + tidyMs);
    const rows = new HostRows(storage, onCreated);
    const { collectMs } = resolveOptions(fairQueue);
    const store = new SqlStore({ rows, clock: this.#calls, graceMs: collectMs, newTokenKey });
    const { clock, tokenKeys } = store;
    const service = new HostService({ fairQueue, store, tokenKeys, calls: this.#calls, clock });
    this.#reportedAt = rows.reportedAt;
    this.#host = { service, store, rows };
    void service.queue.start();
    return this.#host;
  }

  async #serveDirectory(exchange: FetchExchange, request: Request): Promise<Response> {
    this.#directory ??= this.#openDirectory();
    const { service, hosts } = this.#directory;
    if (exchange.path !== REPORT_PATH) return service.serve(exchange);
    const report = (await request.json()) as HostReport;
    hosts.add(report);
    service.stir(report.host);
    return new Response(null, { status: 204 });
  }

  #openDirectory() {
    const clock = this.#calls;
    const hosts = new Directory(this.#ctx.storage.sql, clock);
    const store = new MemoryStore({ clock });
    const { fairQueue } = this.#setup;
    return {
      hosts,
      service: new HostService({ fairQueue, store, shown: hosts, tokenKeys: ["none"], calls: clock, clock }),
    };
  }

  /** Reports the host to the directory, at most once in `REPORT_MS`. No call waits for it. */
  #reportSoon(): void {
    const now = Date.now();
    if (this.#host === undefined || !this.#host.rows.isCreated || now - this.#reportedAt < REPORT_MS) return;
    this.#reportedAt = now;
    this.#host.rows.reportedAt = now;
    const [kept] = this.#host.store.images();
    if (kept !== undefined) this.#ctx.waitUntil(this.#report(reportOf(kept)));
  }

  async #report(report: HostReport): Promise<void> {
    const { id } = this.#ctx;
    const namespace = ownNamespace(this.#env, id.toString());
    if (namespace === undefined) return;
    const directory = new SlotObjects(namespace, { jurisdiction: id.jurisdiction }).of("directory");
    try {
      await directory.fetch(`http://directory${REPORT_PATH}`, { method: "POST", body: JSON.stringify(report) });
    } catch (error) {
      consoleLog.warn("the host could not be reported to the directory", { error });
    }
  }
}

/**
 * The binding of the class that this object belongs to. Ids of objects are valid for one class only. Other bindings may
 * have a method of any name, which would call another Worker, so only bindings of Durable Objects are asked.
 */
function ownNamespace(env: unknown, id: string): SlotNamespace | undefined {
  for (const binding of Object.values(Object(env) as { [name: string]: unknown })) {
    if (Object(binding).constructor?.name !== "DurableObjectNamespace") continue;
    try {
      (binding as { idFromString(id: string): unknown }).idFromString(id);
      return binding as SlotNamespace;
    } catch {
      // An object of another class.
    }
  }
  return undefined;
}
