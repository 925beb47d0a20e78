import type * as Port from "@slotkeeper/queue";
import { encode } from "@slotkeeper/queue";
import { isBrokenPromise } from "./database-error.ts";
import { decodeBook, decodeReply } from "./decode.ts";
import { HostLanes } from "./host-lanes.ts";
import { NewsListener } from "./news-listener.ts";
import { PgDatabase } from "./pg-database.ts";

export interface PostgresStoreOptions {
  readonly dsn: string;
  /** Where `migrate` put the tables. */
  readonly schema?: string | undefined;
  readonly poolSize?: number | undefined;
  /** When a call is given up. */
  readonly timeoutMs?: number | undefined;
  /** A direct address, where `dsn` is a transaction pooler, which passes no notifications on. */
  readonly listenDsn?: string | undefined;
}

const DEFAULTS = { schema: "public", poolSize: 10, timeoutMs: 5_000 } as const;

/**
 * The number of the records and rules that this version has. Every call carries it, and the database refuses another: `SK001`.
 * It is in `slotkeeper_schema_number()`, too.
 */
export const SCHEMA_NUMBER = 1;

/** Calls for one host that may be under way at once. One commit and one read: the engine has no use for more. */
const CALLS_PER_HOST = 2;

/** Cleanup locks each host for a moment. A few at a time keeps that to milliseconds. */
const HOSTS_AT_A_TIME = 50;

/**
 * The store of a fleet. SQL functions compare and swap the state of a host under the lock of its row, so that any number of
 * instances and direct callers share one state (docs/explanation/postgres.md). Every call is one statement and one
 * transaction, and time is the database's.
 */
export class PostgresStore implements Port.HostStore {
  readonly clock = "shared";
  readonly #database: PgDatabase;
  readonly #lanes: HostLanes;
  readonly #listener: NewsListener;

  /** Connects. Throws a `SchemaError` where the schema is not this version's. */
  static async open(options: PostgresStoreOptions): Promise<PostgresStore> {
    const { dsn, schema = DEFAULTS.schema, poolSize = DEFAULTS.poolSize, timeoutMs = DEFAULTS.timeoutMs } = options;
    const database = new PgDatabase({ dsn, schema, poolSize, timeoutMs });
    try {
      await database.check();
    } catch (error) {
      await database.close();
      throw error;
    }
    const lanes = new HostLanes(Math.min(CALLS_PER_HOST, Math.max(1, poolSize - 1)));
    return new PostgresStore(database, lanes, new NewsListener(options.listenDsn ?? dsn, schema));
  }

  private constructor(database: PgDatabase, lanes: HostLanes, listener: NewsListener) {
    this.#database = database;
    this.#lanes = lanes;
    this.#listener = listener;
  }

  read(host: string, since: Port.Tag | undefined): Promise<Port.ReadReply> {
    return this.#lanes.run(host, () => this.#read(host, since));
  }

  commit(commit: Port.Commit): Promise<Port.CommitReply> {
    return this.#lanes.run(commit.host, () => this.#commit(commit));
  }

  async beat({ instance, ttlMs, about, hosts }: Port.Beat): Promise<Port.BeatReply> {
    const isEchoed = ttlMs > 0 && this.#listener.isListening(instance);
    const reply = await this.#call("slotkeeper_beat", {
      p_instance: instance,
      p_ttl_ms: ttlMs,
      p_about: about,
      p_hosts: hosts.map(([host]) => host),
      p_tags: hosts.map(([, tag]) => tag ?? null),
      p_echo: isEchoed,
    });
    if (isEchoed) this.#listener.expectEcho(instance);
    return reply as Port.BeatReply;
  }

  watch(instance: string, listener: (news: Port.News) => void): () => void {
    return this.#listener.watch(instance, listener);
  }

  async peek(hosts: readonly string[]): Promise<ReadonlyMap<string, Port.BookImage>> {
    const books = (await this.#call("slotkeeper_peek", { p_hosts: hosts })) as {
      readonly [host: string]: Port.BookImage;
    };
    return new Map(Object.entries(books).map(([host, book]) => [host, decodeBook(book)]));
  }

  async hostKeys(): Promise<readonly string[]> {
    return (await this.#call("slotkeeper_host_keys", {})) as string[];
  }

  async totals(): Promise<Port.StoreTotals> {
    const totals = (await this.#call("slotkeeper_totals", {})) as Port.StoreTotals;
    return { ...totals, slots: totals.slots ?? Number.POSITIVE_INFINITY };
  }

  async instances(): Promise<readonly Port.InstanceView[]> {
    return (await this.#call("slotkeeper_instances", {})) as Port.InstanceView[];
  }

  async cleanup({ idleMs }: Port.CleanupRequest): Promise<Port.CleanupReply> {
    const failures: unknown[] = [];
    let hosts = 0;
    await this.#call("slotkeeper_forget_rows", {}).catch((error: unknown) => failures.push(error));
    try {
      for (let after: string | null = ""; after !== null; ) {
        const given = { p_idle_ms: idleMs, p_after: after, p_count: HOSTS_AT_A_TIME };
        const reply = (await this.#call("slotkeeper_forget_hosts", given)) as { hosts: number; last: string | null };
        hosts += reply.hosts;
        after = reply.last;
      }
    } catch (error) {
      failures.push(error);
    }
    return { hosts, failures };
  }

  /** Keys that sign session tokens: those the fleet has, or this one if it has none. */
  async tokenKeys(newKey: string): Promise<readonly string[]> {
    return (await this.#call("slotkeeper_token_keys", { p_new_secret: newKey })) as string[];
  }

  /** Whether a commit could be made: the database answers, can be written, and no right is missing. */
  async isReady(): Promise<boolean> {
    return this.#call("slotkeeper_ready", {}).then(
      (isReady) => isReady === true,
      () => false,
    );
  }

  async close(): Promise<void> {
    this.#listener.close();
    await this.#database.close();
  }

  async #read(host: string, since: Port.Tag | undefined): Promise<Port.ReadReply> {
    const given = { p_host: host, p_since: since ?? null };
    return decodeReply((await this.#call("slotkeeper_read", given)) as Port.ReadReply);
  }

  async #commit({ host, instance, base, tag, now, changes, wake, conflicts }: Port.Commit): Promise<Port.CommitReply> {
    const given = {
      p_host: host,
      p_instance: instance,
      p_base: base ?? null,
      p_tag: tag,
      p_now: now,
      p_changes: changes.head === undefined ? null : encode(changes),
      p_wake: wake,
      p_conflicts: conflicts,
    };
    try {
      const reply = (await this.#call("slotkeeper_commit", given)) as Port.CommitReply;
      return reply.isOk ? reply : { isOk: false, reason: reply.reason, ...decodeReply(reply) };
    } catch (error) {
      if (!isBrokenPromise(error)) throw error;
      // The error has undone everything, and cannot return the state.
      return { isOk: false, reason: "slots", ...(await this.#read(host, undefined)) };
    }
  }

  #call(name: string, given: { readonly [argument: string]: unknown }): Promise<unknown> {
    return this.#database.call(name, { p_schema: SCHEMA_NUMBER, ...given });
  }
}
