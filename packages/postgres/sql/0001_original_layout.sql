-- The four tables that other programs know. This migration creates those that are missing. Tables of the original
-- service are changed in place to the same shape and keep every row. Migration 0006 converts the rows themselves.
--
-- Databases of the original differ in details: varchar or text; times with a time zone, without one, or as numbers; a
-- unique key or none; quoted or unquoted column names in the breaker's table. After this migration all of them are the
-- same.

-- Programs that use the tables wait until this migration ends.
DO $$
DECLARE
  v_table text;
BEGIN
  FOREACH v_table IN ARRAY ARRAY['upstream_slot_pool', 'upstream_ip_cooldown', 'upstream_ip_queue_depth', 'THROTTLE_PROTECTION'] LOOP
    IF EXISTS (SELECT FROM pg_tables WHERE schemaname = current_schema AND tablename = v_table) THEN
      EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', v_table);
    END IF;
  END LOOP;
END $$;

CREATE TABLE IF NOT EXISTS upstream_slot_pool (id serial PRIMARY KEY);
CREATE TABLE IF NOT EXISTS upstream_ip_cooldown ();
CREATE TABLE IF NOT EXISTS upstream_ip_queue_depth ();
CREATE TABLE IF NOT EXISTS "THROTTLE_PROTECTION" ();

ALTER TABLE upstream_slot_pool ALTER COLUMN id TYPE integer;

-- PostgreSQL folds unquoted names to lower case.
DO $$
DECLARE
  v_column text;
BEGIN
  FOR v_column IN
    SELECT column_name FROM information_schema.columns
    WHERE table_schema = current_schema AND table_name = 'THROTTLE_PROTECTION' AND column_name <> upper(column_name)
  LOOP
    EXECUTE format('ALTER TABLE "THROTTLE_PROTECTION" RENAME COLUMN %I TO %I', v_column, upper(v_column));
  END LOOP;
END $$;

-- The expression that converts a column to another type. A number that becomes a time is seconds or milliseconds since
-- 1970.
CREATE FUNCTION pg_temp.conversion(p_column text, p_from text, p_to text) RETURNS text
LANGUAGE sql AS $$
  SELECT CASE
    WHEN p_to = 'timestamp with time zone' AND p_from IN ('smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision')
      THEN format('to_timestamp(CASE WHEN %1$I > 100000000000 THEN %1$I / 1000.0 ELSE %1$I END)', p_column)
    WHEN p_to = 'timestamp with time zone' AND p_from = 'timestamp without time zone'
      THEN format('%I AT TIME ZONE ''UTC''', p_column)
    WHEN p_to = 'integer' AND p_from = 'boolean' THEN format('%I::integer', p_column)
    WHEN p_to = 'integer' AND p_from LIKE 'timestamp%' THEN format('floor(extract(epoch FROM %I))::integer', p_column)
    ELSE format('%I::text::%s', p_column, p_to)
  END
$$;

CREATE TEMP TABLE wanted_column (
  table_name text, column_name text, type text, preset text, is_required boolean, position int GENERATED ALWAYS AS IDENTITY
) ON COMMIT DROP;
INSERT INTO wanted_column (table_name, column_name, type, preset, is_required) VALUES
  ('upstream_slot_pool', 'hostname_pattern', 'text', NULL, true),
  ('upstream_slot_pool', 'slot_index', 'integer', NULL, true),
  ('upstream_slot_pool', 'status', 'text', '''available''', true),
  ('upstream_slot_pool', 'ip_hash', 'text', NULL, false),
  ('upstream_slot_pool', 'locked_at', 'timestamp with time zone', NULL, false),
  ('upstream_slot_pool', 'created_at', 'timestamp with time zone', 'now()', true),
  ('upstream_ip_cooldown', 'hostname_pattern', 'text', NULL, true),
  ('upstream_ip_cooldown', 'ip_hash', 'text', NULL, true),
  ('upstream_ip_cooldown', 'last_release_at', 'timestamp with time zone', 'now()', true),
  ('upstream_ip_queue_depth', 'hostname_pattern', 'text', NULL, true),
  ('upstream_ip_queue_depth', 'ip_hash', 'text', NULL, true),
  ('upstream_ip_queue_depth', 'waiting_count', 'integer', '0', true),
  ('upstream_ip_queue_depth', 'updated_at', 'timestamp with time zone', 'now()', true),
  ('THROTTLE_PROTECTION', 'HOSTNAME_HASH', 'text', NULL, true),
  ('THROTTLE_PROTECTION', 'HOSTNAME', 'text', '''''', true),
  ('THROTTLE_PROTECTION', 'ERROR_TIMESTAMP', 'integer', NULL, false),
  ('THROTTLE_PROTECTION', 'IS_PROTECTED', 'integer', NULL, false),
  ('THROTTLE_PROTECTION', 'LAST_ERROR_CODE', 'integer', NULL, false),
  ('THROTTLE_PROTECTION', 'OBS_WINDOW_START', 'integer', NULL, false),
  ('THROTTLE_PROTECTION', 'OBS_ERROR_COUNT', 'integer', '0', true),
  ('THROTTLE_PROTECTION', 'OBS_SUCCESS_COUNT', 'integer', '0', true),
  ('THROTTLE_PROTECTION', 'CONSECUTIVE_ERROR_COUNT', 'integer', '0', true);

DO $$
DECLARE
  r record;
  v_found text;
BEGIN
  FOR r IN SELECT * FROM wanted_column ORDER BY position LOOP
    SELECT format_type(a.atttypid, NULL) INTO v_found FROM pg_attribute a
    WHERE a.attrelid = to_regclass(format('%I', r.table_name)) AND a.attname = r.column_name AND NOT a.attisdropped;
    IF NOT FOUND THEN
      EXECUTE format('ALTER TABLE %I ADD COLUMN %I %s', r.table_name, r.column_name, r.type);
    ELSIF v_found <> r.type THEN
      EXECUTE format('ALTER TABLE %1$I ALTER COLUMN %2$I DROP DEFAULT, ALTER COLUMN %2$I TYPE %3$s USING %4$s', r.table_name,
        r.column_name, r.type, pg_temp.conversion(r.column_name, v_found, r.type));
    END IF;
    IF r.preset IS NOT NULL THEN
      EXECUTE format('UPDATE %1$I SET %2$I = %3$s WHERE %2$I IS NULL', r.table_name, r.column_name, r.preset);
      EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET DEFAULT %s', r.table_name, r.column_name, r.preset);
    END IF;
  END LOOP;
END $$;
-- Unlike a temporary table, the function would stay in the session, and a pooler gives the session to other clients.
DROP FUNCTION pg_temp.conversion(text, text, text);

-- Leaves one row for each slot, bucket and host. Slots with the same number get new numbers, counts of the same bucket
-- are added up, and of two releases the later one is kept.
UPDATE upstream_slot_pool s SET slot_index = n.slot_index
FROM (
  SELECT id, row_number() OVER (PARTITION BY hostname_pattern ORDER BY id)
    + coalesce(max(slot_index) OVER (PARTITION BY hostname_pattern), 0) AS slot_index,
    row_number() OVER (PARTITION BY hostname_pattern, slot_index ORDER BY id) AS nth
  FROM upstream_slot_pool
) n
WHERE s.id = n.id AND (n.nth > 1 OR s.slot_index IS NULL);

CREATE TEMP TABLE merged_cooldown ON COMMIT DROP AS
  SELECT hostname_pattern, coalesce(ip_hash, '') AS ip_hash, max(last_release_at) AS last_release_at
  FROM upstream_ip_cooldown GROUP BY 1, 2 HAVING count(*) > 1 OR bool_or(ip_hash IS NULL);
DELETE FROM upstream_ip_cooldown c USING merged_cooldown m
WHERE c.hostname_pattern = m.hostname_pattern AND coalesce(c.ip_hash, '') = m.ip_hash;
INSERT INTO upstream_ip_cooldown (hostname_pattern, ip_hash, last_release_at) SELECT * FROM merged_cooldown;

CREATE TEMP TABLE merged_depth ON COMMIT DROP AS
  SELECT hostname_pattern, coalesce(ip_hash, '') AS ip_hash, sum(waiting_count)::integer AS waiting_count,
    max(updated_at) AS updated_at
  FROM upstream_ip_queue_depth GROUP BY 1, 2 HAVING count(*) > 1 OR bool_or(ip_hash IS NULL);
DELETE FROM upstream_ip_queue_depth d USING merged_depth m
WHERE d.hostname_pattern = m.hostname_pattern AND coalesce(d.ip_hash, '') = m.ip_hash;
INSERT INTO upstream_ip_queue_depth (hostname_pattern, ip_hash, waiting_count, updated_at) SELECT * FROM merged_depth;

DO $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM wanted_column WHERE is_required ORDER BY position LOOP
    EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET NOT NULL', r.table_name, r.column_name);
  END LOOP;
  -- One key for each table and no other index, so that updates are HOT.
  FOR r IN
    SELECT c.conrelid::regclass AS table_name, c.conname FROM pg_constraint c
    WHERE c.conrelid IN (SELECT to_regclass(format('%I', w.table_name)) FROM wanted_column w) AND c.contype IN ('p', 'u', 'c', 'x')
  LOOP
    EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', r.table_name, r.conname);
  END LOOP;
  FOR r IN
    SELECT i.indexrelid::regclass AS index_name FROM pg_index i
    WHERE i.indrelid IN (SELECT to_regclass(format('%I', w.table_name)) FROM wanted_column w)
  LOOP
    EXECUTE format('DROP INDEX %s', r.index_name);
  END LOOP;
END $$;

ALTER TABLE upstream_slot_pool ADD CONSTRAINT upstream_slot_pool_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX upstream_slot_pool_slot ON upstream_slot_pool (hostname_pattern, slot_index);
ALTER TABLE upstream_ip_cooldown ADD CONSTRAINT upstream_ip_cooldown_pkey PRIMARY KEY (hostname_pattern, ip_hash);
ALTER TABLE upstream_ip_queue_depth ADD CONSTRAINT upstream_ip_queue_depth_pkey PRIMARY KEY (hostname_pattern, ip_hash);
ALTER TABLE "THROTTLE_PROTECTION" ADD CONSTRAINT "THROTTLE_PROTECTION_pkey" PRIMARY KEY ("HOSTNAME_HASH");
