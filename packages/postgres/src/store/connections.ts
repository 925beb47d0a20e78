import { type ClientBase, Pool, type PoolClient } from "pg";
import { parseDsn } from "../connection/parse-dsn.ts";
import type { StoreGauges } from "./store-health.ts";

/** A connection that was free for this long returns to the pool. */
const FREE_MS = 1_000;
/**
 * The pool then closes it after this time. It is longer than the time between two beats of an idle instance: a new
 * connection costs the database more than a beat.
 */
const IDLE_MS = 30_000;

export interface ConnectionOptions {
  readonly dsn: string;
  readonly poolSize: number;
  /** How long a call, and the wait for a connection, may take. */
  readonly timeoutMs: number;
}

/**
 * The connections of a store.
 *
 * CONNECT1 A free connection is taken without waiting. `Pool.connect` waits for the next tick even if a connection is
 *   idle. By then the service would have written the answers to the last commit of a busy host, and the next commit
 *   would be sent 0.5 ms later.
 * CONNECT2 A connection that failed is not used again. After a call without an answer in time, the connections that
 *   have not answered since that call was sent are not used either: they may be dead, too, and each would cost another
 *   wait.
 * CONNECT3 There are at most `poolSize` connections. A call that finds all of them in use waits for its turn, and is
 *   counted.
 */
export class Connections {
  readonly #pool: Pool;
  /** Taken from the pool and not in use. The last one used is at the end. */
  #free: PoolClient[] = [];
  readonly #waits = { count: 0, ms: 0 };
  /** When each connection last showed that it works. */
  readonly #provenAt = new WeakMap<ClientBase, number>();
  /** When the last call without an answer in time was sent. */
  #unansweredAt = Number.NEGATIVE_INFINITY;
  /** All connections, in use or not. */
  readonly #open = new Set<ClientBase>();
  readonly #timeoutMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor({ dsn, poolSize, timeoutMs }: ConnectionOptions) {
    this.#timeoutMs = timeoutMs;
    this.#pool = new Pool({
      application_name: "slotkeeper",
      ...parseDsn(dsn),
      max: poolSize,
      connectionTimeoutMillis: timeoutMs,
      query_timeout: timeoutMs,
      idleTimeoutMillis: IDLE_MS,
      keepAlive: true,
      allowExitOnIdle: true,
    })
      // A restart of the database ends idle connections too. The pool drops them.
      .on("error", () => {})
      .on("remove", (client) => this.#open.delete(client))
      .on("connect", (client) => {
        this.#open.add(client);
        this.#provenAt.set(client, performance.now());
        // A connection that breaks in use rejects its query. Without a listener the event would end the process.
        client.on("error", () => this.#lose(client));
      });
  }

  /** The number of connections, and of calls that wait for one: now, and in total. */
  get gauges(): StoreGauges["pool"] {
    const { totalCount: size, idleCount, waitingCount: waiting } = this.#pool;
    return { size, idle: idleCount + this.#free.length, waiting, waits: this.#waits.count, waitedMs: this.#waits.ms };
  }

  /** A connection that works, as far as known. Returned without a promise if one is free. */
  take(): PoolClient | Promise<PoolClient> {
    for (let client = this.#free.pop(); client !== undefined; client = this.#free.pop()) {
      if (this.#isProven(client)) return client;
      client.release(true);
    }
    return this.#fromPool();
  }

  /** Its call was answered. */
  giveBack(client: PoolClient): void {
    this.#provenAt.set(client, performance.now());
    if (this.#pool.waitingCount > 0 || this.#pool.ending) {
      client.release();
      return;
    }
    this.#free.push(client);
    this.#timer ??= setInterval(() => this.#rest(), FREE_MS).unref();
  }

  /** Its call, sent at `sentAt`, failed. `isUnanswered`: no answer came in time. */
  drop(client: PoolClient, sentAt: number, isUnanswered: boolean): void {
    if (isUnanswered) this.#unansweredAt = Math.max(this.#unansweredAt, sentAt);
    client.release(true);
  }

  /**
   * Resolves when the calls in progress have ended and the connections are closed. A server that does not answer closes none:
   * then it resolves when the last call has been given up, and open sockets do not keep the process alive.
   */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const ended = this.#pool.end();
    for (const client of this.#free.splice(0)) client.release();
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#timeoutMs);
    });
    await Promise.race([ended, patience]);
    clearTimeout(timer);
    for (const client of this.#open) unreference(client);
  }

  #isProven(client: PoolClient): boolean {
    return (this.#provenAt.get(client) ?? 0) >= this.#unansweredAt;
  }

  async #fromPool(): Promise<PoolClient> {
    for (;;) {
      const client = await this.#connect();
      if (this.#isProven(client)) return client;
      client.release(true);
    }
  }

  /** CONNECT3. */
  async #connect(): Promise<PoolClient> {
    const { idleCount, totalCount, options } = this.#pool;
    if (idleCount > 0 || totalCount < options.max) return this.#pool.connect();
    this.#waits.count++;
    const startedAt = performance.now();
    try {
      return await this.#pool.connect();
    } finally {
      this.#waits.ms += performance.now() - startedAt;
    }
  }

  /** Returns connections to the pool that were not used for a while. */
  #rest(): void {
    const usedSince = performance.now() - FREE_MS;
    const isResting = (client: PoolClient) => (this.#provenAt.get(client) ?? 0) < usedSince;
    for (const client of this.#free.filter(isResting)) client.release();
    this.#free = this.#free.filter((client) => !isResting(client));
    if (this.#free.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** CONNECT2. A connection in use is dropped when its call fails. */
  #lose(lost: ClientBase): void {
    const client = this.#free.find((free) => free === lost);
    if (client === undefined) return;
    this.#free = this.#free.filter((free) => free !== lost);
    client.release(true);
  }
}

/**
 * Lets the process exit although the connection is open. Closing says goodbye and waits for the server, which may not answer. The
 * types of `pg` do not have this method.
 */
export function unreference(client: ClientBase): void {
  (client as ClientBase & { unref(): void }).unref();
}
