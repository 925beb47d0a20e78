import type { StoreGauges } from "@slotkeeper/queue";
import { Client, type ClientBase, type ClientConfig } from "pg";
import { Semaphore, type Slot } from "slotkeeper";
import { parseDsn } from "../connection/parse-dsn.ts";
import { isUnanswered } from "./database-error.ts";

/**
 * A connection that was free for this long is closed. It is longer than the time between two beats of an idle instance:
 * a new connection costs the database more than a beat.
 */
const IDLE_MS = 30_000;
const SWEEP_MS = 10_000;

export interface ConnectionOptions {
  readonly dsn: string;
  readonly poolSize: number;
  /** How long a call, and the wait for a connection, may take. */
  readonly timeoutMs: number;
}

interface Connection {
  readonly client: Client;
  /** When it last showed that it works. */
  provenAt: number;
}

/**
 * The connections of a store. `pg` has a pool, but taking a connection from it waits for the next tick even if one is
 * idle (CONNECT1).
 *
 * CONNECT1 A call that finds a free connection is sent without waiting. A tick later the service would have written the
 *   answers to the last commit of a busy host, and the next commit would be sent 0.5 ms later.
 * CONNECT2 A connection that failed is not used again. After a call without an answer in time, the connections that
 *   have not answered since that call was sent are not used either: they may be dead, too, and each would cost another
 *   wait.
 * CONNECT3 There are at most `poolSize` connections. A call that finds all of them in use waits for its turn, and is
 *   counted.
 * CONNECT4 Only a call in progress keeps the process alive.
 */
export class Connections {
  readonly #config: ClientConfig;
  readonly #timeoutMs: number;
  /** One slot for each call in progress. */
  readonly #calls: Semaphore;
  readonly #open = new Set<Connection>();
  /** Not in use. The last one used is at the end. */
  #free: Connection[] = [];
  readonly #waits = { count: 0, ms: 0 };
  /** When the last call without an answer in time was sent. */
  #unansweredAt = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;

  constructor({ dsn, poolSize, timeoutMs }: ConnectionOptions) {
    const times = { connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs, keepAlive: true };
    this.#config = { application_name: "slotkeeper", ...parseDsn(dsn), ...times };
    this.#timeoutMs = timeoutMs;
    this.#calls = new Semaphore(poolSize, { acquireTimeoutMs: timeoutMs });
  }

  /** The number of connections, and of calls that wait for one: now, and in total. */
  get gauges(): NonNullable<StoreGauges["pool"]> {
    const { count: waits, ms: waitedMs } = this.#waits;
    return { size: this.#open.size, idle: this.#free.length, waiting: this.#calls.waiting, waits, waitedMs };
  }

  /** Calls `work` with a connection that works, as far as known. If it fails, the connection is not used again. */
  async run<T>(work: (client: ClientBase) => Promise<T>): Promise<T> {
    // No `await` if it is not needed: CONNECT1.
    const slot = this.#calls.tryAcquire() ?? (await this.#waitForTurn());
    try {
      const connection = this.#takeFree() ?? (await this.#connect());
      return await this.#runOn(connection, work);
    } finally {
      slot.release();
    }
  }

  /**
   * Resolves when the calls in progress have ended and the connections are closed. A server that does not answer closes none:
   * then it resolves when the last call has been given up.
   */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#calls.close();
    const closed = this.#calls.idle().then(() => Promise.all(Array.from(this.#open, (each) => this.#end(each))));
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#timeoutMs);
    });
    await Promise.race([closed, patience]);
    clearTimeout(timer);
    for (const { client } of this.#open) unreference(client);
  }

  /** CONNECT3. */
  async #waitForTurn(): Promise<Slot> {
    this.#waits.count++;
    const startedAt = performance.now();
    try {
      return await this.#calls.acquire();
    } finally {
      this.#waits.ms += performance.now() - startedAt;
    }
  }

  /** CONNECT2. */
  #takeFree(): Connection | undefined {
    for (let connection = this.#free.pop(); connection !== undefined; connection = this.#free.pop()) {
      if (connection.provenAt >= this.#unansweredAt) {
        reference(connection.client);
        return connection;
      }
      void this.#end(connection);
    }
    return undefined;
  }

  async #connect(): Promise<Connection> {
    const connection = { client: new Client(this.#config), provenAt: 0 };
    this.#open.add(connection);
    // A connection that breaks in use rejects its query. Without a listener the event would end the process.
    connection.client.on("error", () => void this.#end(connection));
    try {
      await connection.client.connect();
      return connection;
    } catch (error) {
      void this.#end(connection);
      throw error;
    }
  }

  async #runOn<T>(connection: Connection, work: (client: ClientBase) => Promise<T>): Promise<T> {
    const sentAt = performance.now();
    try {
      const result = await work(connection.client);
      this.#keep(connection);
      return result;
    } catch (error) {
      if (isUnanswered(error)) this.#unansweredAt = Math.max(this.#unansweredAt, sentAt);
      void this.#end(connection);
      throw error;
    }
  }

  #keep(connection: Connection): void {
    if (!this.#open.has(connection)) return;
    connection.provenAt = performance.now();
    unreference(connection.client);
    this.#free.push(connection);
    this.#timer ??= setInterval(() => this.#closeIdle(), SWEEP_MS).unref();
  }

  #closeIdle(): void {
    const usedSince = performance.now() - IDLE_MS;
    for (const connection of this.#free.filter(({ provenAt }) => provenAt < usedSince)) void this.#end(connection);
    if (this.#free.length > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Resolves when the connection is closed. A server that does not answer does not close it. */
  async #end(connection: Connection): Promise<void> {
    if (!this.#open.delete(connection)) return;
    this.#free = this.#free.filter((free) => free !== connection);
    unreference(connection.client);
    await connection.client.end().catch(() => {});
  }
}

/** The types of `pg` do not have these methods. */
type Referenced = ClientBase & { ref(): void; unref(): void };

function reference(client: ClientBase): void {
  (client as Referenced).ref();
}

/** Lets the process exit although the connection is open. Closing it waits for the server, which may not answer. */
export function unreference(client: ClientBase): void {
  (client as Referenced).unref();
}
