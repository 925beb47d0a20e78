import { createHash } from "node:crypto";
import { escapeIdentifier, type PoolClient } from "pg";
import { ApiError } from "./api-error.ts";
import type { Claims } from "./jwt.ts";
import type { RpcRequest } from "./rpc-request.ts";
import type { RpcFunction } from "./schema-cache.ts";

export interface Caller {
  readonly role: string;
  readonly claims: Claims;
}

export interface RpcReply {
  readonly status: number;
  readonly type: string | undefined;
  readonly body: string;
}

/** Transactions: "every request to an API resource runs inside a transaction." */
export async function runCall(
  client: PoolClient,
  called: RpcFunction,
  request: RpcRequest,
  caller: Caller,
): Promise<RpcReply> {
  // Transactions, Access Mode on Functions: GET and HEAD are READ ONLY; POST is READ WRITE for VOLATILE functions only.
  const mode = request.method === "POST" && called.isVolatile ? "READ WRITE" : "READ ONLY";
  // Transactions, Isolation Level: "Every transaction uses the PostgreSQL default isolation level: READ COMMITTED."
  await client.query(`BEGIN ISOLATION LEVEL READ COMMITTED ${mode}`);
  try {
    await client.query(prepared(SETTINGS, settingsOf(called.schema, request, caller)));
    const reply = await query(client, called, request);
    // Transactions, Transaction End: "If the transaction doesn't fail, it will always end in a COMMIT."
    await client.query("COMMIT");
    return reply;
  } catch (error) {
    // Transactions: "Any database failure(like a failed constraint) will result in a rollback of the transaction."
    await client.query("ROLLBACK");
    throw error;
  }
}

/**
 * Transactions: "PostgREST uses settings tied to the transaction lifetime." The role is one: "In PostgreSQL it's done with the
 * SET ROLE statement" (Authentication), and "it also sets the search_path based on db-schemas and db-extra-search-path", whose
 * default is public.
 */
const SETTINGS = `SELECT set_config('search_path', $1, true), set_config('role', $2, true),
  set_config('request.jwt.claims', $3, true), set_config('request.method', $4, true), set_config('request.path', $5, true),
  set_config('request.headers', $6, true)`;

function settingsOf(schema: string, { method, path, headers }: RpcRequest, { role, claims }: Caller): string[] {
  const searchPath = [schema, "public"].map(escapeIdentifier).join(", ");
  // "The role in request.jwt.claims defaults to the value of db-anon-role."
  return [searchPath, role, JSON.stringify({ role, ...claims }), method, path, JSON.stringify(headers)];
}

async function query(client: PoolClient, called: RpcFunction, request: RpcRequest): Promise<RpcReply> {
  const keys = called.arguments.filter(({ name }) => name in request.given);
  const names = keys.map(({ name }) => escapeIdentifier(name));
  const list = names.map((name) => `${name} => given.${name}`).join(", ");
  const from =
    keys.length === 0
      ? ""
      : `json_to_record($1) AS given (${keys.map(({ type }, at) => `${names[at]} ${type}`).join(", ")}), LATERAL `;
  const values = keys.length === 0 ? [] : [JSON.stringify(request.given)];
  const call = `${escapeIdentifier(called.schema)}.${escapeIdentifier(called.name)}(${list})`;
  const value = called.result === "row" ? "reply" : "reply.value";
  const as = called.result === "row" ? "reply" : "reply (value)";
  const text = `SELECT to_json(${value})::text AS json FROM ${from}${call} AS ${as}`;
  const { rows } = await client.query<{ json: string | null }>(prepared(text, values));
  return replyOf(
    called,
    rows.map(({ json }) => json ?? "null"),
    request,
  );
}

/**
 * Functions as RPC, Scalar functions: "PostgREST will detect if the function is scalar or table-valued and will shape the
 * response format accordingly". Changelog of 10.0: "Return 204 No Content without Content-Type for RPCs returning VOID".
 */
function replyOf({ result, isSet }: RpcFunction, rows: readonly string[], { isSingular }: RpcRequest): RpcReply {
  if (result === "void") return { status: 204, type: undefined, body: "" };
  if (result === "row" && isSingular) {
    // Resource Representation: "When a singular response is requested but no entries are found, the server responds with an error message and 406 Not Acceptable".
    if (rows.length !== 1) {
      const details = `The result contains ${rows.length} rows`;
      throw new ApiError(406, "PGRST116", "Cannot coerce the result to a single JSON object", { details });
    }
    return { status: 200, type: "application/vnd.pgrst.object+json; charset=utf-8", body: rows[0] ?? "null" };
  }
  const body = isSet ? `[${rows.join(",")}]` : (rows[0] ?? "null");
  return { status: 200, type: "application/json; charset=utf-8", body };
}

/** Transactions, Main query: "All generated queries use prepared statements". */
function prepared(text: string, values: unknown[]): { name: string; text: string; values: unknown[] } {
  return { name: createHash("sha256").update(text).digest("hex").slice(0, 32), text, values };
}
