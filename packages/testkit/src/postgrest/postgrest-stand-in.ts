/**
 * A stand-in for PostgREST, in front of a real database: no build of PostgREST can be installed from npm.
 *
 * It follows the documented rules of calls to functions, and each rule cites the sentence of https://docs.postgrest.org it
 * follows, after the name of its page. What it does not have: tables and views, filters and `select` on results, bodies
 * other than JSON, unnamed and variadic arguments, keys other than an HS256 secret, `response.*` settings, settings of
 * roles, CORS, OpenAPI, the admin server. `Prefer` is ignored: "params=single-object", the only preference for
 * functions, is deprecated.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Client, Pool } from "pg";
import { LoopbackServer, textOf } from "../proxy/loopback-server.ts";
import { ApiError, errorOfDatabase } from "./api-error.ts";
import { verifyJwt } from "./jwt.ts";
import { parseRequest, type RpcRequest } from "./rpc-request.ts";
import { type Caller, type RpcReply, runCall } from "./run-call.ts";
import { SchemaCache } from "./schema-cache.ts";

export interface PostgrestStandInOptions {
  /** `db-uri`: of the authenticator role. */
  readonly dsn: string;
  /** `db-schemas`. */
  readonly schemas?: readonly string[];
  /** `db-anon-role`; absent: callers without a token are refused. */
  readonly anonRole?: string | undefined;
  /** `jwt-secret`. */
  readonly jwtSecret?: string | undefined;
  /** `db-pool`. */
  readonly poolSize?: number;
}

export class PostgrestStandIn {
  readonly #options: PostgrestStandInOptions;
  readonly #schemas: readonly string[];
  readonly #pool: Pool;
  readonly #listener: Client;
  #cache: SchemaCache;
  readonly #server = new LoopbackServer((incoming, outgoing) => void this.#answer(incoming, outgoing));

  private constructor(options: PostgrestStandInOptions, pool: Pool, listener: Client, cache: SchemaCache) {
    this.#options = options;
    this.#schemas = options.schemas ?? ["public"];
    this.#pool = pool;
    this.#listener = listener;
    this.#cache = cache;
  }

  static async start(options: PostgrestStandInOptions): Promise<PostgrestStandIn> {
    const { dsn, schemas = ["public"], poolSize = 10 } = options;
    const pool = new Pool({ connectionString: dsn, max: poolSize, application_name: "postgrest", keepAlive: true });
    pool.on("error", () => {});
    const listener = new Client({ connectionString: dsn, application_name: "postgrest listener" });
    listener.on("error", () => {});
    await listener.connect();
    const standIn = new PostgrestStandIn(options, pool, listener, await SchemaCache.load(listener, schemas));
    // Schema Cache: "To reload the schema cache from within the database, you can use the NOTIFY command." NOTIFY
    // pgrst, 'reload schema'
    listener.on("notification", ({ payload }) => {
      if (payload === "reload schema") void standIn.reload();
    });
    await listener.query("LISTEN pgrst");
    await standIn.accept();
    return standIn;
  }

  get url(): string {
    return this.#server.url;
  }

  async reload(): Promise<void> {
    this.#cache = await SchemaCache.load(this.#listener, this.#schemas);
  }

  /** Listens, on the same port as before. */
  accept(): Promise<void> {
    return this.#server.accept();
  }

  /** Refuses connections, and ends the open ones, until `accept`. */
  refuse(): Promise<void> {
    return this.#server.refuse();
  }

  async close(): Promise<void> {
    await this.refuse();
    await Promise.all([this.#pool.end(), this.#listener.end()]);
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    try {
      const { status, type, body } = await this.#reply(incoming);
      outgoing.writeHead(status, type === undefined ? {} : { "Content-Type": type }).end(body);
    } catch (error) {
      const failure = error instanceof ApiError ? error : new ApiError(500, "PGRSTX00", String(error));
      // Without it a client would not know how to authenticate (RFC 9110, 15.5.2).
      const challenge = failure.status === 401 ? { "WWW-Authenticate": "Bearer" } : {};
      outgoing
        .writeHead(failure.status, { "Content-Type": "application/json; charset=utf-8", ...challenge })
        .end(failure.body);
    }
  }

  async #reply(incoming: IncomingMessage): Promise<RpcReply> {
    const body = await textOf(incoming);
    const caller = await this.#authenticate(incoming.headers.authorization);
    const request = parseRequest(incoming, body);
    const called = this.#cache.find(this.#schemaOf(request), request.name, Object.keys(request.given));
    const isAuthenticated = caller.role !== this.#options.anonRole;
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw errorOfDatabase(error, isAuthenticated);
    });
    let isBroken = false;
    try {
      return await runCall(client, called, request, caller);
    } catch (error) {
      const failure = errorOfDatabase(error, isAuthenticated);
      isBroken = failure.status === 503 || failure.code.startsWith("57P");
      throw failure;
    } finally {
      client.release(isBroken);
    }
  }

  /**
   * Schemas: "If you don't specify a Profile header, the first schema in the list is selected as the default schema."
   */
  #schemaOf({ profile = this.#schemas[0] ?? "public" }: RpcRequest): string {
    if (this.#schemas.includes(profile)) return profile;
    // PGRST106 (406): "The schema specified when switching schemas is not present in the db-schemas configuration
    //     variable."
    const message = `The schema must be one of the following: ${this.#schemas.join(", ")}`;
    throw new ApiError(406, "PGRST106", message);
  }

  /**
   * Authentication: "When a request contains a valid JWT with a role claim PostgREST will switch to the database role
   * with that name for the duration of the HTTP request." "If the client included no JWT (or one without a role claim)
   * then PostgREST switches into the anonymous role."
   */
  async #authenticate(authorization: string | undefined): Promise<Caller> {
    const { anonRole, jwtSecret } = this.#options;
    // "The Bearer header value can be used with or without capitalization(bearer)."
    const token = /^bearer +(.+)$/i.exec(authorization ?? "")?.[1];
    // PGRST300 (500): "A JWT secret is missing from the configuration."
    if (token !== undefined && jwtSecret === undefined) throw new ApiError(500, "PGRST300", "Server lacks JWT secret");
    const claims = token === undefined ? {} : await verifyJwt(token, jwtSecret as string);
    const role = typeof claims["role"] === "string" ? claims["role"] : anonRole;
    // PGRST302 (401): "Attempted to do a request without authentication when the anonymous role is disabled by not
    //     setting it in db-anon-role."
    if (role === undefined) throw new ApiError(401, "PGRST302", "Anonymous access is disabled");
    return { role, claims };
  }
}
