import { readFileSync } from "node:fs";
import { type ClientBase, escapeIdentifier } from "pg";

/** A right that the service needs and the role does not have. */
export interface MissingRight {
  readonly kind: "schema" | "table" | "function";
  readonly name: string;
  /**
   * The role that does not have the right: the role of the dsn, or the owner of the functions, because they run with
   * its rights.
   */
  readonly role: string;
  /** The statement that grants the right. Undefined: the object does not exist. */
  readonly grant: string | undefined;
}

interface Gap {
  readonly kind: MissingRight["kind"];
  readonly name: string;
  readonly role: string;
  readonly privilege: string;
  readonly exists: boolean;
}

const ROLES = new URL("../../sql/roles.sql", import.meta.url);
const GRANT = /^GRANT (EXECUTE ON FUNCTION|SELECT ON) ([\w\s,]+?) TO slotkeeper_service;/gm;

/** Reads the catalogs, which every role may do, so it works even if the rights are missing. */
const GAPS = `
  WITH home AS (SELECT oid FROM pg_namespace WHERE nspname = $1)
  SELECT 'schema' AS kind, $1 AS name, current_user::text AS role, 'USAGE' AS privilege, true AS exists
  FROM home WHERE NOT has_schema_privilege(home.oid, 'USAGE')
  UNION ALL
  SELECT 'table', wanted, current_user, 'SELECT', true
  FROM unnest($3::text[]) wanted JOIN pg_class t ON t.relname = wanted AND t.relnamespace = (SELECT oid FROM home)
  WHERE NOT has_table_privilege(t.oid, 'SELECT')
  UNION ALL
  SELECT 'function', wanted, current_user, 'EXECUTE', p.oid IS NOT NULL
  FROM unnest($2::text[]) wanted LEFT JOIN pg_proc p ON p.proname = wanted AND p.pronamespace = (SELECT oid FROM home)
  WHERE p.oid IS NULL OR NOT has_function_privilege(p.oid, 'EXECUTE')
  UNION ALL
  SELECT 'table', t.relname, o.rolname, string_agg(privilege, ', '), true
  FROM pg_proc p JOIN pg_roles o ON o.oid = p.proowner JOIN pg_class t ON t.relnamespace = p.pronamespace AND t.relkind = 'r',
    unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) privilege
  WHERE p.proname = 'slotkeeper_commit' AND p.pronamespace = (SELECT oid FROM home)
    AND t.relname ~ '^(slotkeeper_|upstream_|THROTTLE_PROTECTION$)' AND t.relname <> 'slotkeeper_migration'
    AND NOT has_table_privilege(p.proowner, t.oid, privilege)
  GROUP BY t.relname, o.rolname`;

/** The rights that a service with this role would not have. None if the schema is not set up. */
export async function missingRights(client: ClientBase, schema: string): Promise<readonly MissingRight[]> {
  const { functions, tables } = serviceRights();
  const { rows } = await client.query<Gap>(GAPS, [schema, functions, tables]);
  return rows.map((gap) => ({ kind: gap.kind, name: gap.name, role: gap.role, grant: grantOf(gap, schema) }));
}

function grantOf({ kind, name, role, privilege, exists }: Gap, schema: string): string | undefined {
  if (!exists) return undefined;
  const home = escapeIdentifier(schema);
  const what = kind === "schema" ? home : `${home}.${escapeIdentifier(name)}`;
  const type = { schema: "SCHEMA ", table: "", function: "FUNCTION " }[kind];
  return `GRANT ${privilege} ON ${type}${what} TO ${escapeIdentifier(role)};`;
}

/** The functions and tables that the role of a service needs. `sql/roles.sql` is the only list of them. */
function serviceRights(): { readonly functions: readonly string[]; readonly tables: readonly string[] } {
  const granted = [...readFileSync(ROLES, "utf8").matchAll(GRANT)];
  const namesOf = (wanted: string) =>
    granted
      .filter(([, right]) => right === wanted)
      .flatMap(([, , names = ""]) => names.split(",").map((name) => name.trim()));
  return { functions: namesOf("EXECUTE ON FUNCTION"), tables: namesOf("SELECT ON") };
}
