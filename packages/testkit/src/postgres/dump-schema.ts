import type { ClientBase } from "pg";

/**
 * A schema as text, from the catalogs. Unlike a dump by `pg_dump`, it does not depend on the path of migrations or on
 * the version of PostgreSQL. It is for people and for tests, not to be run.
 */
export async function dumpSchema(client: ClientBase, schema = "public"): Promise<string> {
  const parts: string[] = [];
  for (const sql of [TYPES, SEQUENCES, TABLES, INDEXES, COMMENTS, FUNCTIONS]) {
    // Qualified names would depend on the schema, and the text of a function never contains them.
    await client.query("SELECT set_config('search_path', quote_ident($1), false)", [schema]);
    const { rows } = await client.query<{ definition: string }>(sql, [schema]);
    parts.push(...rows.map(({ definition }) => definition.trimEnd()));
  }
  return `${parts.join("\n\n")}\n`;
}

const IN_SCHEMA = "(SELECT oid FROM pg_namespace WHERE nspname = $1)";

const COLUMN = `'  ' || quote_ident(a.attname) || ' ' || format_type(a.atttypid, a.atttypmod)`;

const TYPES = `
  SELECT 'CREATE TYPE ' || quote_ident(t.typname) || E' AS (\\n'
    || string_agg(${COLUMN}, E',\\n' ORDER BY a.attnum) || E'\\n);' AS definition
  FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid AND c.relkind = 'c'
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE t.typnamespace = ${IN_SCHEMA} GROUP BY t.typname ORDER BY t.typname COLLATE "C"`;

const SEQUENCES = `
  SELECT format('CREATE SEQUENCE %I AS %s INCREMENT %s%s;', c.relname, format_type(s.seqtypid, NULL), s.seqincrement,
    CASE WHEN s.seqcycle THEN ' CYCLE' ELSE '' END) AS definition
  FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
  WHERE c.relnamespace = ${IN_SCHEMA} ORDER BY c.relname COLLATE "C"`;

// Columns are ordered by name, because an upgraded table has another order than a new one. From version 18 on, NOT NULL
// is a constraint; before, it is a property of the column.
const TABLES = `
  SELECT 'CREATE TABLE ' || quote_ident(c.relname) || E' (\\n' || (
      SELECT string_agg(${COLUMN} || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
        || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), ''), E',\\n' ORDER BY a.attname COLLATE "C")
      FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    ) || coalesce((
      SELECT string_agg(format(E',\\n  CONSTRAINT %I %s', n.conname, pg_get_constraintdef(n.oid)), '' ORDER BY n.conname COLLATE "C")
      FROM pg_constraint n WHERE n.conrelid = c.oid AND n.contype <> 'n'
    ), '') || E'\\n)' || coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') || ';' AS definition
  FROM pg_class c WHERE c.relnamespace = ${IN_SCHEMA} AND c.relkind = 'r' ORDER BY c.relname COLLATE "C"`;

const INDEXES = `
  SELECT replace(pg_get_indexdef(i.indexrelid), format(' ON %I.', $1::text), ' ON ') || ';' AS definition
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
  WHERE c.relnamespace = ${IN_SCHEMA} AND NOT EXISTS (SELECT FROM pg_constraint n WHERE n.conindid = i.indexrelid)
  ORDER BY c.relname COLLATE "C"`;

const COMMENTS = `
  SELECT format('COMMENT ON %s %I%s IS %L;', CASE c.relkind WHEN 'c' THEN 'TYPE' WHEN 'r' THEN CASE WHEN d.objsubid = 0 THEN 'TABLE' ELSE 'COLUMN' END END,
    c.relname, coalesce('.' || quote_ident(a.attname), ''), d.description) AS definition
  FROM pg_description d JOIN pg_class c ON c.oid = d.objoid AND d.classoid = 'pg_class'::regclass
  LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.objsubid AND d.objsubid > 0
  WHERE c.relnamespace = ${IN_SCHEMA} AND c.relkind IN ('r', 'c')
  ORDER BY c.relname COLLATE "C", a.attname COLLATE "C" NULLS FIRST`;

// The text of the functions is only in the migrations.
const FUNCTIONS = `
  SELECT replace(split_part(pg_get_functiondef(p.oid), 'AS $function$', 1), format(' FUNCTION %I.', $1::text), ' FUNCTION ')
    || '-- text: md5 ' || md5(p.prosrc) AS definition
  FROM pg_proc p WHERE p.pronamespace = ${IN_SCHEMA} AND p.prokind = 'f'
  ORDER BY p.proname COLLATE "C", pg_get_function_identity_arguments(p.oid) COLLATE "C"`;
