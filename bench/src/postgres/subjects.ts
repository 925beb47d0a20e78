import type { Pool } from "pg";
import type postgres from "postgres";

/** The same job, taking a slot of a host and releasing it, in the ways that were considered. */

export const SLOTS = 4;
export const PER_BUCKET = 1;

/** The slots of one host as rows, and the smallest functions that take one, by the way they exclude others. */
export const SCHEMA = `
CREATE TABLE host (name text PRIMARY KEY, grants bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE slot (id int PRIMARY KEY, bucket text) WITH (fillfactor = 50);
INSERT INTO host VALUES ('h', 0);
INSERT INTO slot SELECT generate_series(1, ${SLOTS});

CREATE FUNCTION take(p_bucket text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_id int;
BEGIN
  IF (SELECT count(*) FROM slot WHERE bucket = p_bucket) >= ${PER_BUCKET} THEN RETURN 0; END IF;
  SELECT id INTO v_id FROM slot WHERE bucket IS NULL ORDER BY id LIMIT 1;
  UPDATE slot SET bucket = p_bucket WHERE id = v_id;
  UPDATE host SET grants = grants + 1 WHERE name = 'h';
  RETURN coalesce(v_id, 0);
END $$;

CREATE FUNCTION take_row_lock(p_bucket text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM host WHERE name = 'h' FOR NO KEY UPDATE;
  RETURN take(p_bucket);
END $$;

CREATE FUNCTION take_advisory_lock(p_bucket text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('h'));
  RETURN take(p_bucket);
END $$;

-- Numbered slots, each locked by its holder: no waiting and no counting.
CREATE FUNCTION take_skip_locked(p_bucket text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  v_id int;
BEGIN
  IF (SELECT count(*) FROM slot WHERE bucket = p_bucket) >= ${PER_BUCKET} THEN RETURN 0; END IF;
  SELECT id INTO v_id FROM slot WHERE bucket IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED;
  UPDATE slot SET bucket = p_bucket WHERE id = v_id;
  RETURN coalesce(v_id, 0);
END $$;

CREATE FUNCTION give_back(p_id int) RETURNS void LANGUAGE sql AS $$ UPDATE slot SET bucket = NULL WHERE id = p_id $$;
`;

export interface Taker {
  take(bucket: string): Promise<number>;
  giveBack(id: number): Promise<unknown>;
}

export const byFunction = (pool: Pool, name: string): Taker => ({
  take: async (bucket) => (await pool.query<{ id: number }>(`SELECT ${name}($1) AS id`, [bucket])).rows[0]?.id ?? 0,
  giveBack: (id) => pool.query("SELECT give_back($1)", [id]),
});

/** The row lock again, statement by statement: the lock is held over five round trips. */
export const byStatements = (pool: Pool): Taker => ({
  take: async (bucket) => {
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      await client.query("SELECT FROM host WHERE name = 'h' FOR NO KEY UPDATE");
      const { rows: held } = await client.query("SELECT FROM slot WHERE bucket = $1", [bucket]);
      const { rows: free } = await client.query<{ id: number }>("SELECT id FROM slot WHERE bucket IS NULL LIMIT 1");
      const id = held.length < PER_BUCKET ? (free[0]?.id ?? 0) : 0;
      await client.query("UPDATE slot SET bucket = $1 WHERE id = $2", [bucket, id]);
      await client.query("COMMIT");
      return id;
    } finally {
      client.release();
    }
  },
  giveBack: (id) => pool.query("SELECT give_back($1)", [id]),
});

/** The other driver, with and without named prepared statements, which a transaction pooler does not allow. */
export const byOtherDriver = (sql: postgres.Sql): Taker => ({
  take: async (bucket) => (await sql<{ id: number }[]>`SELECT take_row_lock(${bucket}) AS id`)[0]?.id ?? 0,
  giveBack: (id) => sql`SELECT give_back(${id}::int)`,
});
