import type * as Port from "@slotkeeper/queue";
import type { StoreProblem } from "../failures/failure-table.ts";
import { NoticeListener } from "./notice-listener.ts";
import { PgDatabase } from "./pg-database.ts";
import { SqlStore } from "./sql-store.ts";

/** Options of `PostgresStore.open`. */
export interface PostgresStoreOptions {
  /** The address of the database: `postgres://user:password@host:5432/name`. */
  readonly dsn: string;
  /** The schema in which `migrate` created the tables. */
  readonly schema?: string | undefined;
  /** The most connections for calls. Default: 10. One more listens for notifications. */
  readonly poolSize?: number | undefined;
  /** How long a call may take. */
  readonly timeoutMs?: number | undefined;
  /** A direct address for notifications, if `dsn` is a transaction pooler, which does not forward them. */
  readonly listenDsn?: string | undefined;
}

/** A call waits at most 2 s for a lock (a commit 0.5 s). So a call without an answer after 3 s has lost its connection. */
const DEFAULTS = { schema: "public", poolSize: 10, timeoutMs: 3_000 } as const;

/**
 * How often the listening connection is tested: by beats while sessions wait (`busy`) and otherwise (`idle`), and by
 * health checks.
 */
const ECHO_EVERY_MS = { busy: 15_000, idle: 60_000, check: 1_000 } as const;

/**
 * The store of a fleet. SQL functions compare and swap the state of a host under the lock of its row, so that any number of
 * instances and direct callers share one state (docs/explanation/postgres.md).
 *
 * @example
 * ```ts
 * import { migrate, PostgresStore } from "@slotkeeper/postgres";
 *
 * const dsn = "postgres://keeper:secret@127.0.0.1:5432/slots";
 * await migrate({ dsn });
 * const store = await PostgresStore.open({ dsn, poolSize: 4 });
 * console.log(await store.totals());
 * await store.close();
 * ```
 */
export class PostgresStore extends SqlStore {
  readonly #database: PgDatabase;
  readonly #listener: NoticeListener;

  /** Connects. Throws a `SchemaError` unless the schema has this version. */
  static async open(options: PostgresStoreOptions): Promise<PostgresStore> {
    const { dsn, schema = DEFAULTS.schema, poolSize = DEFAULTS.poolSize, timeoutMs = DEFAULTS.timeoutMs } = options;
    const database = new PgDatabase({ dsn, schema, poolSize, timeoutMs });
    try {
      await database.check();
    } catch (error) {
      await database.connections.close();
      throw error;
    }
    return new PostgresStore(database, poolSize, new NoticeListener(options.listenDsn ?? dsn, schema));
  }

  private constructor(database: PgDatabase, poolSize: number, listener: NoticeListener) {
    super(database, poolSize);
    this.#database = database;
    this.#listener = listener;
  }

  override async beat(beat: Port.Beat): Promise<Port.BeatReply> {
    const everyMs = ECHO_EVERY_MS[beat.hosts.length > 0 ? "busy" : "idle"];
    const isEchoed = beat.ttlMs > 0 && this.#listener.wantsEcho(beat.instance, everyMs);
    const askedAt = performance.now();
    const reply = await super.beat(beat, isEchoed);
    if (isEchoed) this.#listener.expectEcho(beat.instance, askedAt);
    return reply;
  }

  override watch(instance: string, listener: (notice: Port.CommitNotice) => void): () => void {
    return this.#listener.watch(instance, listener);
  }

  /** Also tests the listening connection. */
  override async health(): Promise<Port.StoreHealth<StoreProblem>> {
    const echoes = this.#listener.instances.filter((name) => this.#listener.wantsEcho(name, ECHO_EVERY_MS.check));
    const askedAt = performance.now();
    const health = await super.health(echoes);
    if (health.isReady) for (const instance of echoes) this.#listener.expectEcho(instance, askedAt);
    return health;
  }

  /** Numbers for the metrics: calls, connections, and whether notifications arrive. */
  override get gauges(): Port.StoreGauges {
    const { isUp, losses } = this.#listener;
    return { ...super.gauges, pool: this.#database.connections.gauges, listener: { isUp, losses } };
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    this.#listener.close();
    await this.#database.connections.close();
  }
}
