-- The functions that other programs call, by name or by position: docs/reference/sql.md. They replace the original's in one
-- step with the change of its rows, so that no caller sees one without the other. Each is the owner's (SECURITY DEFINER):
-- a caller needs the right to the function, and none to a table.

LOCK TABLE upstream_slot_pool, upstream_ip_cooldown, upstream_ip_queue_depth, "THROTTLE_PROTECTION" IN ACCESS EXCLUSIVE MODE;

-- Who was named in a grant of an original function keeps it. PUBLIC was not named by anybody: it is PostgreSQL's default.
CREATE TEMP TABLE original_grant ON COMMIT DROP AS
  SELECT DISTINCT p.proname, a.grantee::regrole AS role
  FROM pg_proc p, aclexplode(p.proacl) a
  WHERE p.pronamespace = quote_ident(current_schema())::regnamespace AND p.proname ~ '^(download|func)_' AND a.privilege_type = 'EXECUTE'
    AND a.grantee NOT IN (0, p.proowner);

DO $$
DECLARE
  v_function regprocedure;
BEGIN
  FOR v_function IN
    SELECT oid FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname IN (
      'download_try_acquire_slot', 'download_release_slot', 'download_register_fq_waiter', 'download_release_fq_waiter',
      'download_check_throttle_protection', 'download_upsert_throttle_protection', 'func_try_acquire_slot',
      'func_release_fair_slot', 'func_cleanup_zombie_slots', 'func_cleanup_ip_cooldown', 'func_cleanup_queue_depth')
  LOOP
    EXECUTE format('DROP ROUTINE %s', v_function);
  END LOOP;
END $$;

-- The original's rows. A host is known by its key now: the hash that the breaker's table has for the name, else the name's
-- SHA-256; what is a hash already stays.
CREATE FUNCTION pg_temp.key_of(p_pattern text) RETURNS text
LANGUAGE sql AS $$
  SELECT coalesce(
    (SELECT "HOSTNAME_HASH" FROM "THROTTLE_PROTECTION" WHERE p_pattern IN ("HOSTNAME_HASH", "HOSTNAME") LIMIT 1),
    CASE WHEN p_pattern ~ '^[0-9a-fA-F]{32,128}$' THEN p_pattern END,
    slotkeeper_name_key(p_pattern))
$$;

UPDATE "THROTTLE_PROTECTION" SET "HOSTNAME_HASH" = slotkeeper_host_key(NULL, "HOSTNAME")
WHERE "HOSTNAME_HASH" = '' AND "HOSTNAME" <> '';
UPDATE "THROTTLE_PROTECTION" SET
  opened_at = CASE WHEN "IS_PROTECTED" = 1 THEN least("ERROR_TIMESTAMP" * 1000.0, slotkeeper_now()) END,
  window_start_at = CASE WHEN "IS_PROTECTED" IS DISTINCT FROM 1 THEN least("OBS_WINDOW_START" * 1000.0, slotkeeper_now()) END;

-- Two names of one host may have had a slot of the same number.
CREATE TEMP TABLE rekeyed_slot ON COMMIT DROP AS
  SELECT id, key, row_number() OVER (PARTITION BY key ORDER BY slot_index, id) AS slot_index
  FROM (SELECT id, slot_index, pg_temp.key_of(hostname_pattern) AS key FROM upstream_slot_pool) s;
UPDATE upstream_slot_pool SET slot_index = -id;
UPDATE upstream_slot_pool s SET hostname_pattern = r.key, slot_index = r.slot_index FROM rekeyed_slot r WHERE s.id = r.id;

-- Whoever holds a slot of the original keeps it for one default lease from now, and gives it back as it meant to: by its
-- id, which was its token as well.
UPDATE upstream_slot_pool SET status = 'available', ip_hash = NULL, locked_at = NULL WHERE status <> 'locked';
UPDATE upstream_slot_pool SET ip_hash = coalesce(ip_hash, ''), locked_at = least(coalesce(locked_at, now()), now()) WHERE status = 'locked';
UPDATE upstream_slot_pool SET token = id::text, granted_by = 'id', granted_at = extract(epoch FROM locked_at) * 1000,
  ends_at = slotkeeper_now() + 30000
WHERE status = 'locked' AND ends_at IS NULL;

CREATE TEMP TABLE rekeyed_cooldown ON COMMIT DROP AS
  SELECT pg_temp.key_of(hostname_pattern) AS key, ip_hash, least(max(last_release_at), now()) AS last_release_at
  FROM upstream_ip_cooldown GROUP BY 1, 2;
DELETE FROM upstream_ip_cooldown;
INSERT INTO upstream_ip_cooldown (hostname_pattern, ip_hash, last_release_at, is_direct) SELECT *, true FROM rekeyed_cooldown;

-- A waiter of the original counts for 20 s after its bucket was last heard of.
CREATE TEMP TABLE rekeyed_depth ON COMMIT DROP AS
  SELECT pg_temp.key_of(hostname_pattern) AS key, ip_hash, greatest(sum(waiting_count), 0)::integer AS waiting_count,
    least(max(updated_at), now()) AS updated_at, slotkeeper_lower(min(hostname_pattern)) AS hostname
  FROM upstream_ip_queue_depth GROUP BY 1, 2;
DELETE FROM upstream_ip_queue_depth;
INSERT INTO upstream_ip_queue_depth (hostname_pattern, ip_hash, waiting_count, updated_at, expires_at, expiries, hostname)
SELECT key, ip_hash, waiting_count, updated_at, ends_at, array_fill(ends_at, ARRAY[waiting_count]),
  CASE WHEN hostname <> key AND slotkeeper_name_key(hostname) <> key THEN hostname END
FROM rekeyed_depth, LATERAL (SELECT (extract(epoch FROM updated_at) * 1000 + 20000)::double precision AS ends_at) e;
DROP FUNCTION pg_temp.key_of(text);

-- A function of the original that waits for this very lock goes on with its old text, and people set slots free by hand:
-- both would write past the books. They get an error, and can call again.
ALTER TABLE upstream_slot_pool ADD CONSTRAINT upstream_slot_pool_books CHECK ((status = 'locked') = (ends_at IS NOT NULL));

-- The books of their hosts.
DO $$
DECLARE
  h slotkeeper_host;
  v_slot upstream_slot_pool;
  v_host text;
BEGIN
  FOR v_host IN
    SELECT hostname_pattern FROM upstream_slot_pool WHERE status = 'locked'
    UNION SELECT hostname_pattern FROM upstream_ip_queue_depth
  LOOP
    h := slotkeeper_open(v_host, slotkeeper_direct_policy(
      (SELECT greatest(count(*), 1) FROM upstream_slot_pool WHERE hostname_pattern = v_host), 'Infinity', 30000, 60000));
    FOR v_slot IN SELECT * FROM upstream_slot_pool WHERE hostname_pattern = v_host AND status = 'locked' ORDER BY id LOOP
      h.fence := h.fence + 1;
      UPDATE upstream_slot_pool SET fence = h.fence WHERE id = v_slot.id;
      h := slotkeeper_move(h, v_slot.ip_hash, NULL, 0, 1);
      h.next_end_at := least(h.next_end_at, v_slot.ends_at);
    END LOOP;
    h.direct_waiting := (SELECT coalesce(sum(waiting_count), 0) FROM upstream_ip_queue_depth WHERE hostname_pattern = v_host);
    PERFORM slotkeeper_close(h);
  END LOOP;
END $$;

-- Tries once for a slot.
CREATE FUNCTION download_try_acquire_slot(
  p_hostname_hash text, p_hostname text, p_ip_bucket text, p_now_ms bigint, p_max_slot_per_host integer,
  p_max_slot_per_ip integer, p_max_waiters_per_ip integer DEFAULT 0, p_zombie_timeout integer DEFAULT 30,
  p_cooldown_seconds integer DEFAULT 0, p_throttle_time_window integer DEFAULT 60,
  p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION', p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'
) RETURNS TABLE (
  status text, slot_token text, queue_depth integer, ip_queue_depth integer, throttle_code integer, throttle_retry_after integer
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  a slotkeeper_direct_answer;
BEGIN
  PERFORM slotkeeper_refuse_table(p_throttle_table_name, 'THROTTLE_PROTECTION');
  PERFORM slotkeeper_refuse_table(p_queue_depth_table_name, 'upstream_ip_queue_depth');
  a := slotkeeper_try_direct(
    slotkeeper_host_key(p_hostname_hash, p_hostname),
    slotkeeper_checked('p_ip_bucket', coalesce(p_ip_bucket, ''), 255),
    slotkeeper_direct_policy(
      slotkeeper_required('p_max_slot_per_host', p_max_slot_per_host, 0),
      slotkeeper_or_unlimited(p_max_slot_per_ip),
      slotkeeper_required('p_zombie_timeout', p_zombie_timeout, 1) * 1000,
      greatest(0, coalesce(p_throttle_time_window, 60)) * 1000.0
    ),
    greatest(0, coalesce(p_cooldown_seconds, 0)) * 1000.0,
    'token'
  );
  RETURN QUERY SELECT a.status, a.token, (a.depths).host, (a.depths).bucket,
    CASE WHEN a.status = 'THROTTLED' THEN a.code END,
    CASE WHEN a.status = 'THROTTLED' THEN greatest(1, ceil(a.retry_in_ms / 1000))::integer END;
END $$;

-- Gives a slot back. What is nobody's any more, or never was, is let pass: releasing twice is no error.
CREATE FUNCTION download_release_slot(p_hostname_hash text, p_ip_bucket text, p_slot_token text, p_now_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  -- A bare number is the token of a slot that the original gave out.
  v_id integer := CASE WHEN p_slot_token ~ '^[0-9]{1,9}$' THEN p_slot_token::integer ELSE slotkeeper_token_row(p_slot_token) END;
  h slotkeeper_host := slotkeeper_find((SELECT hostname_pattern FROM upstream_slot_pool WHERE id = v_id));
  v_slot upstream_slot_pool;
BEGIN
  IF h.host IS NULL THEN RETURN; END IF;
  SELECT * INTO v_slot FROM upstream_slot_pool
  WHERE id = v_id AND hostname_pattern = h.host AND token = p_slot_token AND status = 'locked' AND NOT is_released;
  IF FOUND THEN PERFORM slotkeeper_release_direct(h, v_slot, true); ELSE PERFORM slotkeeper_close(h); END IF;
END $$;

-- Counts a waiter, for as long as it says or until it is released.
CREATE FUNCTION download_register_fq_waiter(
  p_hostname_hash text, p_hostname text, p_ip_bucket text, p_max_waiters_per_ip integer DEFAULT 0,
  p_zombie_timeout_seconds integer DEFAULT 20, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth',
  p_max_waiters_per_host integer DEFAULT 0
) RETURNS TABLE (status text, queue_depth integer, ip_queue_depth integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_host text := slotkeeper_host_key(p_hostname_hash, p_hostname);
  v_bucket text := slotkeeper_checked('p_ip_bucket', coalesce(p_ip_bucket, ''), 255);
  v_lasts_ms double precision := slotkeeper_required('p_zombie_timeout_seconds', p_zombie_timeout_seconds, 1) * 1000;
  h slotkeeper_host;
  d slotkeeper_depths;
  v_status text := 'REGISTERED';
BEGIN
  PERFORM slotkeeper_refuse_table(p_queue_depth_table_name, 'upstream_ip_queue_depth');
  h := slotkeeper_find(v_host);
  IF h.host IS NULL THEN h := slotkeeper_open(v_host, slotkeeper_direct_policy(5, 1, 30000, 60000)); END IF;
  d := slotkeeper_depths(h, v_bucket);
  IF d.host >= slotkeeper_or_unlimited(p_max_waiters_per_host) THEN
    v_status := 'HOST_QUEUE_FULL';
  ELSIF d.bucket >= slotkeeper_or_unlimited(p_max_waiters_per_ip) THEN
    v_status := 'QUEUE_FULL';
  ELSE
    h.direct_waiting := greatest(1, h.direct_waiting);
    d := slotkeeper_count_waiter(h, v_bucket, v_lasts_ms, nullif(slotkeeper_lower(p_hostname), ''));
  END IF;
  PERFORM slotkeeper_close(h);
  RETURN QUERY SELECT v_status, d.host, d.bucket;
END $$;

-- A waiter more; those that are over go on the way. Returns who waits now.
CREATE FUNCTION slotkeeper_count_waiter(h slotkeeper_host, p_bucket text, p_lasts_ms double precision, p_hostname text)
RETURNS slotkeeper_depths
LANGUAGE plpgsql AS $$
DECLARE
  v_ends_at double precision := h.touched_at + p_lasts_ms;
BEGIN
  INSERT INTO upstream_ip_queue_depth AS d (hostname_pattern, ip_hash, waiting_count, updated_at, expires_at, expiries, hostname)
  VALUES (h.host, p_bucket, 1, to_timestamp(h.touched_at / 1000), v_ends_at, ARRAY[v_ends_at],
    CASE WHEN h.host <> slotkeeper_name_key(p_hostname) THEN p_hostname END)
  ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET
    expiries = ARRAY(SELECT e FROM unnest(d.expiries || v_ends_at) e WHERE e > h.touched_at ORDER BY e),
    waiting_count = 1 + (SELECT count(*) FROM unnest(d.expiries) e WHERE e > h.touched_at),
    expires_at = greatest(d.expires_at, v_ends_at),
    updated_at = excluded.updated_at;
  RETURN slotkeeper_depths(h, p_bucket);
END $$;

-- A waiter less.
CREATE FUNCTION download_release_fq_waiter(
  p_hostname text, p_ip_bucket text, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_bucket text := coalesce(p_ip_bucket, '');
  v_host text := coalesce((
    SELECT hostname_pattern FROM upstream_ip_queue_depth
    WHERE hostname = slotkeeper_lower(p_hostname) AND ip_hash = v_bucket AND waiting_count > 0 LIMIT 1
  ), slotkeeper_pattern_key(p_hostname));
  h slotkeeper_host;
BEGIN
  PERFORM slotkeeper_refuse_table(p_queue_depth_table_name, 'upstream_ip_queue_depth');
  h := slotkeeper_find(v_host);
  IF h.host IS NULL THEN RETURN; END IF;
  UPDATE upstream_ip_queue_depth d SET expiries = n.expiries, waiting_count = cardinality(n.expiries),
    updated_at = to_timestamp(h.touched_at / 1000)
  FROM (
    SELECT ARRAY(SELECT e FROM unnest(q.expiries) e WHERE e > h.touched_at ORDER BY e OFFSET 1) AS expiries
    FROM upstream_ip_queue_depth q WHERE q.hostname_pattern = h.host AND q.ip_hash = v_bucket
  ) n
  WHERE d.hostname_pattern = h.host AND d.ip_hash = v_bucket;
  PERFORM slotkeeper_close(h);
END $$;

-- Whether callers should stay away: the host answered with errors less than p_throttle_time_window seconds ago.
CREATE FUNCTION download_check_throttle_protection(
  p_hostname_hash text, p_hostname text, p_throttle_time_window integer DEFAULT 60,
  p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION'
) RETURNS TABLE (is_protected boolean, error_code integer, retry_after integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_window_ms double precision := greatest(0, coalesce(p_throttle_time_window, 60)) * 1000.0;
  v_now double precision := slotkeeper_now();
  b slotkeeper_breaker;
BEGIN
  PERFORM slotkeeper_refuse_table(p_throttle_table_name, 'THROTTLE_PROTECTION');
  b := slotkeeper_breaker_read(slotkeeper_host_key(p_hostname_hash, p_hostname), v_now, v_window_ms);
  IF v_now - b.opened_at < v_window_ms THEN
    RETURN QUERY SELECT true, b.code, greatest(1, ceil((v_window_ms - (v_now - b.opened_at)) / 1000))::integer;
  ELSE
    RETURN QUERY SELECT false, NULL::integer, NULL::integer;
  END IF;
END $$;

-- An upstream's answer, with the thresholds of the caller. Returns the breaker's row.
CREATE FUNCTION download_upsert_throttle_protection(
  p_hostname_hash text, p_hostname text, p_now integer, p_is_error boolean, p_status_code integer,
  p_throttle_time_window integer, p_observe_window_seconds integer, p_error_ratio_percent integer,
  p_consecutive_threshold integer, p_min_sample_count integer, p_fast_error_ratio_percent integer DEFAULT NULL,
  p_fast_min_sample_count integer DEFAULT NULL, p_table_name text DEFAULT 'THROTTLE_PROTECTION'
) RETURNS TABLE (
  "HOSTNAME_HASH" text, "HOSTNAME" text, "ERROR_TIMESTAMP" integer, "IS_PROTECTED" integer, "LAST_ERROR_CODE" integer,
  "OBS_WINDOW_START" integer, "OBS_ERROR_COUNT" integer, "OBS_SUCCESS_COUNT" integer, "CONSECUTIVE_ERROR_COUNT" integer
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_host text := slotkeeper_host_key(p_hostname_hash, p_hostname);
  v_open_ms double precision := greatest(0, coalesce(p_throttle_time_window, 60)) * 1000.0;
  -- Success or error is the caller's word, not the code's.
  v_code integer := CASE WHEN p_is_error THEN coalesce(p_status_code, 0) ELSE 200 END;
  p slotkeeper_policy := slotkeeper_direct_policy(5, 1, 30000, v_open_ms);
  h slotkeeper_host;
BEGIN
  PERFORM slotkeeper_refuse_table(p_table_name, 'THROTTLE_PROTECTION');
  h := slotkeeper_find(v_host);
  IF h.host IS NULL THEN h := slotkeeper_open(v_host, p); END IF;
  p.breaker_codes := CASE WHEN p_is_error THEN ARRAY[v_code] ELSE '{}' END;
  p.breaker_window_ms := greatest(0, coalesce(p_observe_window_seconds, 60)) * 1000.0;
  p.breaker_ratio_percent := coalesce(p_error_ratio_percent, 100);
  p.breaker_min_samples := coalesce(p_min_sample_count, 0);
  p.breaker_fast_ratio_percent := coalesce(p_fast_error_ratio_percent, 100);
  p.breaker_fast_min_samples := CASE WHEN p_fast_error_ratio_percent IS NULL THEN 0 ELSE coalesce(p_fast_min_sample_count, 0) END;
  p.breaker_consecutive := coalesce(p_consecutive_threshold, 0);
  PERFORM slotkeeper_breaker_report(v_host, p, v_code, false, h.touched_at);
  UPDATE "THROTTLE_PROTECTION" t SET "HOSTNAME" = slotkeeper_lower(p_hostname)
  WHERE t."HOSTNAME_HASH" = v_host AND p_hostname <> '' AND t."HOSTNAME" <> slotkeeper_lower(p_hostname);
  PERFORM slotkeeper_close(h);
  RETURN QUERY SELECT t."HOSTNAME_HASH", t."HOSTNAME", t."ERROR_TIMESTAMP", t."IS_PROTECTED", t."LAST_ERROR_CODE",
    t."OBS_WINDOW_START", t."OBS_ERROR_COUNT", t."OBS_SUCCESS_COUNT", t."CONSECUTIVE_ERROR_COUNT"
  FROM "THROTTLE_PROTECTION" t WHERE t."HOSTNAME_HASH" = v_host;
END $$;

-- A slot's id; 0: the bucket is at its limit or cools down; -1: none is free.
CREATE FUNCTION func_try_acquire_slot(
  p_hostname_pattern text, p_ip_hash text, p_global_limit integer, p_per_ip_limit integer, p_zombie_timeout_seconds integer,
  p_cooldown_seconds integer
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  a slotkeeper_direct_answer := slotkeeper_try_direct(
    slotkeeper_pattern_key(p_hostname_pattern),
    slotkeeper_checked('p_ip_hash', coalesce(p_ip_hash, ''), 255),
    slotkeeper_direct_policy(
      slotkeeper_required('p_global_limit', p_global_limit, 0),
      slotkeeper_or_unlimited(p_per_ip_limit),
      slotkeeper_required('p_zombie_timeout_seconds', p_zombie_timeout_seconds, 1) * 1000,
      60000
    ),
    greatest(0, coalesce(p_cooldown_seconds, 0)) * 1000.0,
    'id'
  );
BEGIN
  RETURN CASE a.status WHEN 'ACQUIRED' THEN a.slot_id WHEN 'IP_TOO_MANY' THEN 0 ELSE -1 END;
END $$;

-- Gives back what func_try_acquire_slot gave out, and nothing else.
CREATE FUNCTION func_release_fair_slot(p_slot_id integer, p_enable_cooldown boolean DEFAULT true) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  h slotkeeper_host := slotkeeper_find((SELECT hostname_pattern FROM upstream_slot_pool WHERE id = p_slot_id));
  v_slot upstream_slot_pool;
BEGIN
  IF h.host IS NULL THEN RETURN; END IF;
  SELECT * INTO v_slot FROM upstream_slot_pool
  WHERE id = p_slot_id AND hostname_pattern = h.host AND granted_by = 'id' AND status = 'locked' AND NOT is_released;
  IF FOUND THEN PERFORM slotkeeper_release_direct(h, v_slot, coalesce(p_enable_cooldown, true)); ELSE PERFORM slotkeeper_close(h); END IF;
END $$;

-- Frees what time has ended. A lease lasts as long as it was given for, whatever the argument; a host that is in use at
-- this moment settles itself. Returns how many slots that freed.
CREATE FUNCTION func_cleanup_zombie_slots(p_zombie_timeout_seconds integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_timeout_ms double precision := slotkeeper_required('p_zombie_timeout_seconds', p_zombie_timeout_seconds, 0) * 1000;
  v_freed integer := 0;
  v_before integer;
  v_host text;
  h slotkeeper_host;
BEGIN
  FOR v_host IN SELECT DISTINCT hostname_pattern FROM upstream_slot_pool s WHERE s.status = 'locked' LOOP
    SELECT * INTO h FROM slotkeeper_host WHERE host = v_host FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    h.touched_at := slotkeeper_now();
    v_before := (h.ledger).in_flight;
    h := slotkeeper_reclaim_aged(slotkeeper_settle(h, h.touched_at), v_timeout_ms);
    v_freed := v_freed + v_before - (h.ledger).in_flight;
    PERFORM slotkeeper_close(h);
  END LOOP;
  RETURN v_freed;
END $$;

-- Rows that are in use at this moment are not old, and nobody waits for them.
CREATE FUNCTION func_cleanup_ip_cooldown(p_ttl_seconds integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_ttl_ms double precision := slotkeeper_required('p_ttl_seconds', p_ttl_seconds, 0) * 1000;
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_cooldown WHERE (hostname_pattern, ip_hash) IN (
    SELECT hostname_pattern, ip_hash FROM upstream_ip_cooldown
    WHERE extract(epoch FROM last_release_at) * 1000 <= slotkeeper_now() - v_ttl_ms AND coalesce(cool_until, 0) <= slotkeeper_now()
    FOR UPDATE SKIP LOCKED
  );
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;

-- Buckets whose waiters are over, or that nobody has spoken for in so long.
CREATE FUNCTION func_cleanup_queue_depth(p_ttl_seconds integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
  v_ttl_ms double precision := slotkeeper_required('p_ttl_seconds', p_ttl_seconds, 0) * 1000;
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_queue_depth WHERE (hostname_pattern, ip_hash) IN (
    SELECT hostname_pattern, ip_hash FROM upstream_ip_queue_depth
    WHERE expires_at <= slotkeeper_now() OR waiting_count = 0
      OR extract(epoch FROM updated_at) * 1000 <= slotkeeper_now() - v_ttl_ms
    FOR UPDATE SKIP LOCKED
  );
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;

-- Nothing is for PUBLIC; those who were named before are named again.
DO $$
DECLARE
  r record;
BEGIN
  FOR r IN
    SELECT p.oid::regprocedure AS function, g.role FROM pg_proc p LEFT JOIN original_grant g ON g.proname = p.proname
    WHERE p.pronamespace = quote_ident(current_schema())::regnamespace AND p.proname ~ '^(slotkeeper|download|func)_'
  LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', r.function);
    IF r.role IS NOT NULL THEN EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', r.function, r.role); END IF;
  END LOOP;
  FOR r IN
    SELECT t.oid::regtype AS type FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid
    WHERE t.typnamespace = quote_ident(current_schema())::regnamespace AND t.typname LIKE 'slotkeeper\_%' AND c.relkind = 'c'
  LOOP
    EXECUTE format('REVOKE ALL ON TYPE %s FROM PUBLIC', r.type);
  END LOOP;
END $$;
