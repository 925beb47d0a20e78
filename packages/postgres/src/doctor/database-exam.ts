import type { InstanceView } from "@slotkeeper/queue";
import { Client, type ClientConfig, escapeIdentifier, type QueryResultRow } from "pg";
import { parseDsn, placeOf } from "../connection/parse-dsn.ts";
import { explainFailure } from "../failures/explain-failure.ts";
import { readMigrations } from "../migrate/migration-files.ts";
import { type MigrationState, readSchemaState, schemaProblem } from "../migrate/schema-state.ts";
import { SCHEMA_NUMBER } from "../store/sql-store.ts";
import { type MissingRight, missingRights } from "./missing-rights.ts";

/** The oldest PostgreSQL that the migrations and the store are tested with. */
export const OLDEST_POSTGRES = 15;

/** What the server reports about itself. */
export interface ServerFacts {
  /** For display, such as `18.4`. */
  readonly version: string;
  readonly major: number;
  /** A standby, or a session that may only read. */
  readonly isReadOnly: boolean;
  /** A crash of the server may lose commits that it has answered. */
  readonly isAsynchronous: boolean;
  /** A pooler answers in place of the server. */
  readonly isPooled: boolean;
}

/** How far the database's clock is from this machine's. */
export interface ClockReading {
  /** The database's clock minus this machine's. */
  readonly offsetMs: number;
  /** The true offset differs by at most this. */
  readonly errorMs: number;
}

const CLOCK_READINGS = 5;

/**
 * Checks whether a service could use a database. No check changes anything. Each rejects with a `MigrateError` or a
 * `SchemaError` whose message says what to do.
 */
export class DatabaseExam {
  readonly #client: Client;
  readonly #config: ClientConfig;

  /** Connects. Rejects with a `MigrateError` if that fails. */
  static async open(dsn: string): Promise<DatabaseExam> {
    const config = { application_name: "slotkeeper doctor", ...parseDsn(dsn) };
    const exam = new DatabaseExam(new Client(config), config);
    await exam.#explained(exam.#client.connect());
    return exam;
  }

  private constructor(client: Client, config: ClientConfig) {
    this.#client = client;
    this.#config = config;
    // A broken connection rejects the running query. Without this listener the event would end the process.
    client.on("error", () => {});
  }

  /** The address of the database, without the password. */
  get place(): string {
    return `${placeOf(this.#config)}/${this.#config.database ?? ""}`;
  }

  /** The version and state of the server. */
  async server(): Promise<ServerFacts> {
    const [row] = await this.#ask<{ version: string; number: number; readonly: boolean; commit: string; pid: number }>(
      `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
        pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' AS readonly,
        current_setting('synchronous_commit') AS commit, pg_backend_pid() AS pid`,
    );
    const { version = "", number = 0, readonly = false, commit = "on", pid = 0 } = row ?? {};
    const { processID } = this.#client as Client & { readonly processID?: number };
    return {
      version,
      major: Math.floor(number / 10_000),
      isReadOnly: readonly,
      isAsynchronous: commit === "off",
      isPooled: processID !== pid,
    };
  }

  /** Throws a `SchemaError` unless the schema has this version. */
  async schema(schema: string): Promise<readonly MigrationState[]> {
    const states = await this.#explained(readSchemaState(this.#client, schema, readMigrations()));
    const problem = schemaProblem(schema, states);
    if (problem !== undefined) throw problem;
    return states;
  }

  /** The rights that the service needs and the role does not have. */
  missingRights(schema: string): Promise<readonly MissingRight[]> {
    return this.#explained(missingRights(this.#client, schema));
  }

  /** Measures several times and uses the fastest round trip, which has the smallest error. */
  async clock(): Promise<ClockReading> {
    let best: ClockReading | undefined;
    for (let reading = 0; reading < CLOCK_READINGS; reading++) {
      const [askedAt, started] = [Date.now(), performance.now()];
      const [row] = await this.#ask<{ now: number }>(
        "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::double precision AS now",
      );
      const errorMs = (performance.now() - started) / 2;
      if (best !== undefined && best.errorMs <= errorMs) continue;
      best = { offsetMs: (row?.now ?? 0) - askedAt - errorMs, errorMs };
    }
    return best as ClockReading;
  }

  /** The instances that are alive. */
  async instances(schema: string): Promise<readonly InstanceView[]> {
    const [row] = await this.#ask<{ views: InstanceView[] }>(
      `SELECT ${escapeIdentifier(schema)}.slotkeeper_instances($1) AS views`,
      [SCHEMA_NUMBER],
    );
    return row?.views ?? [];
  }

  /** A text that is the same for two connections to one database, and different for different databases. */
  async identity(): Promise<string> {
    const [row] = await this.#ask<{ identity: string }>(
      "SELECT pg_postmaster_start_time()::text || ' ' || current_database() AS identity",
    );
    return row?.identity ?? "";
  }

  /** Calls the listener for every notification on the channel. */
  async listen(channel: string, listener: () => void): Promise<void> {
    this.#client.on("notification", (notification) => {
      if (notification.channel === channel) listener();
    });
    await this.#ask(`LISTEN ${escapeIdentifier(channel)}`);
  }

  /** Sends a notification on the channel. */
  async notify(channel: string): Promise<void> {
    await this.#ask("SELECT pg_notify($1, '')", [channel]);
  }

  /** Ends the connection. */
  async close(): Promise<void> {
    await this.#client.end().catch(() => {});
  }

  async #ask<Row extends QueryResultRow>(sql: string, values: unknown[] = []): Promise<readonly Row[]> {
    return (await this.#explained(this.#client.query<Row>(sql, values))).rows;
  }

  #explained<T>(answer: Promise<T>): Promise<T> {
    return answer.catch((error: unknown) => {
      throw explainFailure(error, this.#config, "serve");
    });
  }
}
