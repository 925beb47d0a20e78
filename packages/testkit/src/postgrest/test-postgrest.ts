import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Client } from "pg";
import { TestDatabase } from "../postgres/test-database.ts";
import { signJwt } from "./jwt.ts";
import { PostgrestStandIn, type PostgrestStandInOptions } from "./postgrest-stand-in.ts";

const ROLES = new URL("./sql/roles.sql", import.meta.resolve("@slotkeeper/postgres/package.json"));
const SECRET = "a secret of 32 characters or more, for tests only";

/**
 * A database for one test file with PostgREST in front of it, set up as docs/guides/postgres.md says: the roles of
 * `roles.sql`, an authenticator that may become them, and an anonymous role without rights. Roles belong to the server,
 * which tests share, so each has its own name here.
 */
export class TestPostgrest implements AsyncDisposable {
  readonly database: TestDatabase;
  readonly owner: Client;
  readonly standIn: PostgrestStandIn;
  readonly #names: RoleNames;
  readonly #headers = new Map<keyof RoleNames, string>();

  private constructor(database: TestDatabase, owner: Client, standIn: PostgrestStandIn, names: RoleNames) {
    this.database = database;
    this.owner = owner;
    this.standIn = standIn;
    this.#names = names;
  }

  static async open(
    options: Pick<PostgrestStandInOptions, "poolSize" | "schemas"> & { readonly hasAnonRole?: boolean } = {},
  ): Promise<TestPostgrest> {
    const { hasAnonRole = true, ...rest } = options;
    const database = await TestDatabase.open();
    const owner = await database.openSession();
    const names = namesOf(randomBytes(4).toString("hex"));
    const password = randomBytes(12).toString("hex");
    await owner.query(withNames(readFileSync(ROLES, "utf8"), names));
    await owner.query(`CREATE ROLE ${names.authenticator} LOGIN NOINHERIT PASSWORD '${password}'`);
    await owner.query(`CREATE ROLE ${names.anon} NOLOGIN`);
    await owner.query(
      `GRANT ${names.service}, ${names.postgrest}, ${names.reader}, ${names.anon} TO ${names.authenticator}`,
    );
    const dsn = new URL(database.directDsn);
    dsn.username = names.authenticator;
    dsn.password = password;
    const anonRole = hasAnonRole ? names.anon : undefined;
    const standIn = await PostgrestStandIn.start({ ...rest, dsn: dsn.href, anonRole, jwtSecret: SECRET });
    const server = new TestPostgrest(database, owner, standIn, names);
    for (const role of Object.keys(names) as (keyof RoleNames)[]) {
      server.#headers.set(role, await server.headerWith(role));
    }
    return server;
  }

  get url(): string {
    return this.standIn.url;
  }

  /** The header with a bearer token for one of the roles. */
  authHeader(role: keyof RoleNames): string {
    return this.#headers.get(role) as string;
  }

  /** The same with more claims. */
  async headerWith(role: keyof RoleNames, claims: object = {}): Promise<string> {
    return `Bearer ${await signJwt({ role: this.#names[role], ...claims }, SECRET)}`;
  }

  roleName(role: keyof RoleNames): string {
    return this.#names[role];
  }

  async close(): Promise<void> {
    await this.standIn.close();
    const names = Object.values(this.#names).join(", ");
    await this.owner.query(`DROP OWNED BY ${names}`);
    await this.owner.query(`DROP ROLE ${names}`);
    await this.database.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

interface RoleNames {
  readonly service: string;
  readonly reader: string;
  readonly postgrest: string;
  readonly authenticator: string;
  readonly anon: string;
}

function namesOf(id: string): RoleNames {
  const named = (role: string) => `slotkeeper_${role}_${id}`;
  return {
    service: named("service"),
    reader: named("reader"),
    postgrest: named("postgrest"),
    authenticator: named("authenticator"),
    anon: named("anon"),
  };
}

function withNames(sql: string, { service, reader, postgrest }: RoleNames): string {
  return sql
    .replaceAll("slotkeeper_service", service)
    .replaceAll("slotkeeper_reader", reader)
    .replaceAll("slotkeeper_postgrest", postgrest);
}
