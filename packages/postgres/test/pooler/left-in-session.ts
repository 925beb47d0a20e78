import type { ClientBase } from "pg";

// The simple query protocol: a query with parameters would find its own portal.
const LEFT = `
  SELECT 'setting ' || name AS what FROM pg_settings WHERE source = 'session'
  UNION ALL SELECT 'statement ' || name FROM pg_prepared_statements
  UNION ALL SELECT 'cursor ' || name FROM pg_cursors
  UNION ALL SELECT 'channel ' || channel FROM pg_listening_channels() channel
  UNION ALL SELECT 'advisory lock ' || objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
  UNION ALL SELECT 'temporary ' || pg_describe_object(classid, objid, objsubid) FROM pg_depend
    WHERE refclassid = 'pg_namespace'::regclass AND refobjid = pg_my_temp_schema()
  ORDER BY 1`;

/**
 * State that outlives the transactions of a session. Through a transaction pooler it would be lost, or reach another
 * client.
 */
export async function leftInSession(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ what: string }>(LEFT);
  return rows.map(({ what }) => what);
}
