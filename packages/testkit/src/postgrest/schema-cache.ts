import type { ClientBase } from "pg";
import { ApiError } from "./api-error.ts";

/**
 * Signatures of the functions in the exposed schemas.
 *
 * Schema Cache: "Getting this metadata requires expensive queries. To avoid repeating this work, PostgREST uses a schema cache."
 * So a function that was made or changed later is not known until the cache is reloaded.
 */
export interface RpcFunction {
  readonly schema: string;
  readonly name: string;
  readonly arguments: readonly { readonly name: string; readonly type: string; readonly isRequired: boolean }[];
  readonly isVolatile: boolean;
  /** `void` has no result, `scalar` one value, `row` one object; sets of the latter two are arrays. */
  readonly result: "void" | "scalar" | "row";
  readonly isSet: boolean;
}

/** Functions as RPC: "Stored Procedures are not supported." Arguments without a name cannot be given by name. */
const FUNCTIONS = `
  SELECT n.nspname AS schema, p.proname AS name, p.provolatile = 'v' AS "isVolatile", p.proretset AS "isSet",
    CASE WHEN p.prorettype = 'void'::regtype THEN 'void'
      WHEN t.typtype = 'c' OR p.prorettype = 'record'::regtype OR p.proargmodes && '{t,o,b}' THEN 'row' ELSE 'scalar' END AS result,
    coalesce((
      SELECT json_agg(json_build_object('name', p.proargnames[at], 'type', format_type(p.proargtypes[at - 1], NULL),
        'isRequired', at <= p.pronargs - p.pronargdefaults) ORDER BY at)
      FROM generate_series(1, p.pronargs) at), '[]') AS arguments
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_type t ON t.oid = p.prorettype
  WHERE n.nspname = ANY ($1) AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype
    AND p.pronargs <= coalesce(cardinality(p.proargnames), 0) AND p.provariadic = 0`;

export class SchemaCache {
  readonly #functions: readonly RpcFunction[];

  private constructor(functions: readonly RpcFunction[]) {
    this.#functions = functions;
  }

  static async load(client: ClientBase, schemas: readonly string[]): Promise<SchemaCache> {
    const { rows } = await client.query<RpcFunction>(FUNCTIONS, [schemas]);
    return new SchemaCache(rows);
  }

  /**
   * Functions as RPC: "Each key/value of the object will become an argument." So a function matches if it has an argument for
   * each key, and every argument without a default is given.
   */
  find(schema: string, name: string, keys: readonly string[]): RpcFunction {
    const found = this.#functions.filter((candidate) => {
      if (candidate.schema !== schema || candidate.name !== name) return false;
      const names = new Set(candidate.arguments.map((argument) => argument.name));
      const required = candidate.arguments.filter(({ isRequired }) => isRequired);
      return keys.every((key) => names.has(key)) && required.every((argument) => keys.includes(argument.name));
    });
    const [first, ...more] = found;
    const signature = `${schema}.${name}${keys.length === 0 ? "" : `(${[...keys].sort().join(", ")})`}`;
    if (first === undefined) throw unknownFunction(signature);
    // PGRST203 (300): "Caused by requesting overloaded functions with the same argument names but different types".
    if (more.length > 0)
      throw new ApiError(300, "PGRST203", `Could not choose the best candidate function: ${signature}`);
    return first;
  }
}

/** PGRST202 (404): "Caused by a stale function signature, otherwise the function may not exist in the database." */
function unknownFunction(signature: string): ApiError {
  return new ApiError(404, "PGRST202", `Could not find the function ${signature} in the schema cache`, {
    details: `Searched for the function ${signature}, but no matches were found in the schema cache.`,
  });
}
