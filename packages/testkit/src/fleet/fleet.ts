import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import { type PostgresOptions, type PostgresServer, startPostgres } from "../postgres/postgres-server.ts";
import { onServer } from "../postgres/test-cluster.ts";
import { TcpProxy } from "../proxy/tcp-proxy.ts";
import { migrateBy, THIS_CHECKOUT } from "./checkout.ts";
import { ServeProcess, type ServeProcessOptions } from "./serve-process.ts";

export interface FleetOptions {
  readonly instances: number;
  readonly fairQueue: FairQueueConfig;
  readonly postgres?: PostgresOptions;
  readonly poolSize?: number;
  /**
   * Returns the backend for the instances, given the superuser's address of the database. Default: the database itself.
   */
  readonly backend?: (dsn: string) => Promise<object>;
  /** Gives each instance a connection to the database that can be cut: see `way`. */
  readonly hasWays?: boolean;
  /** The checkout whose service runs, to compare two versions. Default: this one. */
  readonly checkout?: string;
}

/** Real processes of the service, on their own PostgreSQL server. */
export class Fleet {
  readonly database: PostgresServer;
  /** The address for the service, with no more rights than it needs. */
  readonly #serviceDsn: string;
  readonly #options: FleetOptions;
  readonly #folder = mkdtempSync(join(tmpdir(), "slotkeeper-fleet-"));
  readonly #processes: ServeProcess[] = [];
  readonly #ways: TcpProxy[] = [];
  readonly #given: Promise<object> | undefined;

  static async start(options: FleetOptions): Promise<Fleet> {
    const database = await startPostgres(options.postgres);
    const fleet = new Fleet(database, await prepare(database.dsn, options.checkout), options);
    try {
      const numbers = Array.from({ length: options.instances }, (_, at) => at);
      if (options.hasWays === true) for (const at of numbers) fleet.#ways[at] = await TcpProxy.to(fleet.#serviceDsn);
      await Promise.all(numbers.map((at) => fleet.launch(at)));
      return fleet;
    } catch (error) {
      await fleet.stop();
      throw error;
    }
  }

  private constructor(database: PostgresServer, serviceDsn: string, options: FleetOptions) {
    this.database = database;
    this.#serviceDsn = serviceDsn;
    this.#options = options;
    this.#given = options.backend?.(database.dsn);
  }

  /** The address for the superuser, without a proxy. */
  get dsn(): string {
    return this.database.dsn;
  }

  get processes(): readonly ServeProcess[] {
    return this.#processes;
  }

  get urls(): readonly string[] {
    return this.#processes.map(({ url }) => url);
  }

  /** The proxy between the instance and the database. */
  way(at: number): TcpProxy {
    const way = this.#ways[at];
    if (way === undefined) throw new Error("Expected a fleet that was started with `hasWays`");
    return way;
  }

  /** Starts an instance in place of one that has ended or is about to end. */
  async launch(at: number, options?: ServeProcessOptions): Promise<ServeProcess> {
    const file = join(this.#folder, `config-${at}.json`);
    const { fairQueue, checkout = THIS_CHECKOUT } = this.#options;
    const backend = await this.#backend(at);
    writeFileSync(file, JSON.stringify({ listen: "127.0.0.1:0", logLevel: "warn", backend, fairQueue }));
    const started = await ServeProcess.start(file, { checkout, ...options });
    this.#processes[at] = started;
    return started;
  }

  #backend(at: number): object | Promise<object> {
    const { poolSize } = this.#options;
    if (this.#given !== undefined) return this.#given;
    const dsn = this.#ways[at]?.url ?? this.#serviceDsn;
    return { mode: "postgres", postgres: { dsn, ...(poolSize === undefined ? {} : { poolSize }) } };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map((process) => process.kill()));
    await Promise.all(this.#ways.map((way) => way.close()));
    await this.database.stop();
    rmSync(this.#folder, { recursive: true });
  }
}

/** Creates the schema, its roles, and a user that has only the role of the service. */
async function prepare(dsn: string, checkout = THIS_CHECKOUT): Promise<string> {
  await migrateBy(checkout, dsn);
  const password = randomBytes(12).toString("hex");
  await onServer(dsn, async (client) => {
    await client.query(readFileSync(join(checkout, "packages/postgres/sql/roles.sql"), "utf8"));
    await client.query(`CREATE ROLE fleet LOGIN PASSWORD '${password}' IN ROLE slotkeeper_service`);
  });
  const service = new URL(dsn);
  service.username = "fleet";
  service.password = password;
  return service.href;
}
