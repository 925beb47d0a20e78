-- The functions that other programs call, by name or by position (docs/reference/sql.md), and the conversion of the
-- original rows. Both change in one transaction, so that no caller sees one without the other. Each function runs with
-- the rights of its owner (SECURITY DEFINER): a caller needs the right to the function, and none to a table. 0004
-- explains their settings.

LOCK TABLE upstream_slot_pool, upstream_ip_cooldown, upstream_ip_queue_depth, "THROTTLE_PROTECTION" IN ACCESS EXCLUSIVE MODE;

-- Roles that were named in a grant of an original function keep it. A grant to PUBLIC is PostgreSQL's default, so it is
-- not kept.
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

-- Hosts are now identified by their key: the key that the breaker's table gives for the name or hash in any spelling,
-- otherwise the hash, otherwise the SHA-256 of the name.
CREATE TEMP TABLE breaker_key ON COMMIT DROP AS
  SELECT "HOSTNAME_HASH" AS original, lower("HOSTNAME_HASH" COLLATE "C") AS hash, slotkeeper_plain_name("HOSTNAME") AS name,
    CASE WHEN ("HOSTNAME_HASH", "HOSTNAME") = ('', '') THEN '' ELSE slotkeeper_host_key("HOSTNAME_HASH", "HOSTNAME") END AS key
  FROM "THROTTLE_PROTECTION";
CREATE INDEX ON breaker_key (hash);
CREATE INDEX ON breaker_key (name);
CREATE FUNCTION pg_temp.key_of(p_pattern text) RETURNS text
LANGUAGE sql AS $$
  SELECT coalesce(
    (SELECT min(key) FROM breaker_key WHERE hash = lower(p_pattern COLLATE "C")),
    (SELECT min(key) FROM breaker_key WHERE name = slotkeeper_plain_name(p_pattern)),
    CASE WHEN p_pattern ~* '^[0-9a-f]{32,128}$' THEN lower(p_pattern COLLATE "C") END,
    slotkeeper_name_key(p_pattern))
$$;

-- Of several spellings of one host, the breaker that is open and opened last is kept.
CREATE TEMP TABLE rekeyed_breaker ON COMMIT DROP AS
  SELECT DISTINCT ON (k.key) k.key, t."HOSTNAME", t."ERROR_TIMESTAMP", t."IS_PROTECTED", t."LAST_ERROR_CODE",
    t."OBS_WINDOW_START", t."OBS_ERROR_COUNT", t."OBS_SUCCESS_COUNT", t."CONSECUTIVE_ERROR_COUNT"
  FROM "THROTTLE_PROTECTION" t JOIN breaker_key k ON k.original = t."HOSTNAME_HASH"
  ORDER BY k.key, t."IS_PROTECTED" DESC NULLS LAST, t."ERROR_TIMESTAMP" DESC NULLS LAST, t."OBS_WINDOW_START" DESC NULLS LAST;
DELETE FROM "THROTTLE_PROTECTION";
INSERT INTO "THROTTLE_PROTECTION" ("HOSTNAME_HASH", "HOSTNAME", "ERROR_TIMESTAMP", "IS_PROTECTED", "LAST_ERROR_CODE",
  "OBS_WINDOW_START", "OBS_ERROR_COUNT", "OBS_SUCCESS_COUNT", "CONSECUTIVE_ERROR_COUNT")
SELECT * FROM rekeyed_breaker;
UPDATE "THROTTLE_PROTECTION" SET
  opened_at = CASE WHEN "IS_PROTECTED" = 1 THEN least("ERROR_TIMESTAMP" * 1000.0, slotkeeper_now()) END,
  window_start_at = CASE WHEN "IS_PROTECTED" IS DISTINCT FROM 1 THEN least("OBS_WINDOW_START" * 1000.0, slotkeeper_now()) END;

-- Two spellings of one host may each have a slot with the same number.
CREATE TEMP TABLE rekeyed_slot ON COMMIT DROP AS
  SELECT id, key, row_number() OVER (PARTITION BY key ORDER BY slot_index, id) AS slot_index
  FROM (SELECT id, slot_index, pg_temp.key_of(hostname_pattern) AS key FROM upstream_slot_pool) s;
UPDATE upstream_slot_pool SET slot_index = -id;
UPDATE upstream_slot_pool s SET hostname_pattern = r.key, slot_index = r.slot_index FROM rekeyed_slot r WHERE s.id = r.id;

-- The holder of an original slot keeps it for one default lease from now. It releases the slot by its id, which was its
-- token.
UPDATE upstream_slot_pool SET status = 'available', ip_hash = NULL, locked_at = NULL WHERE status <> 'locked';
UPDATE upstream_slot_pool SET ip_hash = coalesce(ip_hash, ''), locked_at = least(coalesce(locked_at, now()), now()) WHERE status = 'locked';
UPDATE upstream_slot_pool SET token = id::text, instance = '', granted_at = extract(epoch FROM locked_at) * 1000,
  ends_at = slotkeeper_now() + 30000, keep_until = slotkeeper_now()
WHERE status = 'locked';

CREATE TEMP TABLE rekeyed_cooldown ON COMMIT DROP AS
  SELECT pg_temp.key_of(hostname_pattern) AS key, ip_hash, least(max(last_release_at), now()) AS last_release_at
  FROM upstream_ip_cooldown GROUP BY 1, 2;
DELETE FROM upstream_ip_cooldown;
INSERT INTO upstream_ip_cooldown (hostname_pattern, ip_hash, last_release_at, is_direct) SELECT *, true FROM rekeyed_cooldown;

-- A waiter of the original counts for 20 s after the last update of its row.
CREATE TEMP TABLE rekeyed_depth ON COMMIT DROP AS
  SELECT pg_temp.key_of(hostname_pattern) AS key, ip_hash, greatest(sum(waiting_count), 0)::integer AS waiting_count,
    least(max(updated_at), now()) AS updated_at, slotkeeper_plain_name(min(hostname_pattern)) AS hostname
  FROM upstream_ip_queue_depth GROUP BY 1, 2;
DELETE FROM upstream_ip_queue_depth;
INSERT INTO upstream_ip_queue_depth (hostname_pattern, ip_hash, waiting_count, updated_at, expires_at, expiries, hostname)
SELECT key, ip_hash, waiting_count, updated_at, ends_at, array_fill(ends_at, ARRAY[waiting_count]),
  CASE WHEN hostname <> key AND slotkeeper_name_key(hostname) <> key THEN hostname END
FROM rekeyed_depth, LATERAL (SELECT (extract(epoch FROM updated_at) * 1000 + 20000)::double precision AS ends_at) e;
DROP FUNCTION pg_temp.key_of(text);

-- Creates a host for each key with live rows, so that slots that are held count against the limits and the service
-- finds them.
DO $$
DECLARE
  h slotkeeper_host;
  b "THROTTLE_PROTECTION";
  v_host text;
BEGIN
  FOR v_host IN
    SELECT hostname_pattern FROM upstream_slot_pool WHERE status = 'locked'
    UNION SELECT "HOSTNAME_HASH" FROM "THROTTLE_PROTECTION" WHERE opened_at IS NOT NULL OR window_start_at IS NOT NULL
  LOOP
    SELECT * INTO b FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = v_host;
    h := slotkeeper_open(v_host, nullif(b."HOSTNAME", ''),
      (SELECT greatest(count(*), 1) FROM upstream_slot_pool WHERE hostname_pattern = v_host));
    UPDATE upstream_slot_pool s SET fence = h.fence + f.nth, session = 'direct-id:' || h.fence + f.nth
    FROM (SELECT id, row_number() OVER (ORDER BY id) AS nth FROM upstream_slot_pool WHERE hostname_pattern = v_host AND status = 'locked') f
    WHERE s.id = f.id;
    PERFORM slotkeeper_commit_direct(h, jsonb_build_object(
      'fence', greatest(h.fence, (SELECT max(fence) FROM upstream_slot_pool WHERE hostname_pattern = v_host)),
      'breaker', CASE WHEN b.opened_at IS NULL AND b.window_start_at IS NULL THEN slotkeeper_closed_breaker()
        ELSE jsonb_build_object('openedAt', b.opened_at, 'windowStartAt', b.window_start_at, 'code', coalesce(b."LAST_ERROR_CODE", 0),
          'errors', b."OBS_ERROR_COUNT", 'successes', b."OBS_SUCCESS_COUNT", 'consecutive', b."CONSECUTIVE_ERROR_COUNT") END));
  END LOOP;
END $$;

-- A running function of the original may wait for our lock and then continue with its old text, and operators free
-- slots by hand. Both would write without a new tag. They get an error instead, and can call again.
ALTER TABLE upstream_slot_pool ADD CONSTRAINT upstream_slot_pool_lease CHECK ((status = 'locked') = (token IS NOT NULL));

-- The original used a number of the sequence for each attempt. Ours uses one for each row, and may start again at its
-- end.
DO $$
BEGIN
  EXECUTE format('ALTER SEQUENCE %s AS integer MAXVALUE 2147483647 CYCLE', pg_get_serial_sequence('upstream_slot_pool', 'id'));
END $$;

-- Tries once to get a slot.
CREATE FUNCTION download_try_acquire_slot(
  p_hostname_hash text, p_hostname text, p_ip_bucket text, p_now_ms bigint, p_max_slot_per_host integer,
  p_max_slot_per_ip integer, p_max_waiters_per_ip integer DEFAULT 0, p_zombie_timeout integer DEFAULT 30,
  p_cooldown_seconds integer DEFAULT 0, p_throttle_time_window integer DEFAULT 60,
  p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION', p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'
) RETURNS TABLE (
  status text, slot_token text, queue_depth integer, ip_queue_depth integer, throttle_code integer, throttle_retry_after integer
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET extra_float_digits = 1
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  t slotkeeper_try;
  a slotkeeper_answer;
BEGIN
  PERFORM slotkeeper_refuse_table(p_throttle_table_name, 'THROTTLE_PROTECTION');
  PERFORM slotkeeper_refuse_table(p_queue_depth_table_name, 'upstream_ip_queue_depth');
  t := ROW(slotkeeper_host_key(p_hostname_hash, p_hostname),
    slotkeeper_plain_name(p_hostname),
    slotkeeper_checked('p_ip_bucket', coalesce(p_ip_bucket, ''), 255),
    slotkeeper_required('p_max_slot_per_host', p_max_slot_per_host, 0),
    slotkeeper_or_unlimited(p_max_slot_per_ip),
    slotkeeper_required('p_zombie_timeout', p_zombie_timeout, 1) * 1000,
    greatest(0, coalesce(p_cooldown_seconds, 0)) * 1000.0,
    slotkeeper_open_ms(p_throttle_time_window),
    false);
  a := slotkeeper_try_direct(t);
  RETURN QUERY SELECT a.status, a.token, (a.depths).host, (a.depths).bucket, a.code,
    CASE WHEN a.status = 'THROTTLED' THEN greatest(1, ceil(a.retry_in_ms / 1000))::integer END;
END $$;

-- Releases a slot. A token without a slot is ignored, so releasing twice is not an error.
CREATE FUNCTION download_release_slot(p_hostname_hash text, p_ip_bucket text, p_slot_token text, p_now_ms bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET extra_float_digits = 1
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  v_host text := substring(p_slot_token FROM '^slot_(.*)\.[^.]*$');
  h slotkeeper_host;
  s upstream_slot_pool;
BEGIN
  -- A plain number is the token of a slot that the original granted. Other tokens contain their host.
  IF p_slot_token ~ '^[0-9]{1,10}$' THEN
    SELECT hostname_pattern INTO v_host FROM upstream_slot_pool WHERE id = p_slot_token::bigint;
  END IF;
  h := slotkeeper_find(v_host);
  IF h.host IS NULL THEN RETURN; END IF;
  SELECT * INTO s FROM upstream_slot_pool
  WHERE hostname_pattern = h.host AND token = p_slot_token AND ends_at > h.last_now AND NOT is_released;
  IF FOUND THEN PERFORM slotkeeper_release_direct(h, s, true); END IF;
END $$;

-- Counts a waiter for the given time, or until it is released.
CREATE FUNCTION download_register_fq_waiter(
  p_hostname_hash text, p_hostname text, p_ip_bucket text, p_max_waiters_per_ip integer DEFAULT 0,
  p_zombie_timeout_seconds integer DEFAULT 20, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth',
  p_max_waiters_per_host integer DEFAULT 0
) RETURNS TABLE (status text, queue_depth integer, ip_queue_depth integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET extra_float_digits = 1
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  v_host text := slotkeeper_host_key(p_hostname_hash, p_hostname);
  v_bucket text := slotkeeper_checked('p_ip_bucket', coalesce(p_ip_bucket, ''), 255);
  v_lasts_ms double precision := slotkeeper_required('p_zombie_timeout_seconds', p_zombie_timeout_seconds, 1) * 1000;
  v_name text := slotkeeper_plain_name(p_hostname);
  h slotkeeper_host;
  d slotkeeper_depths;
  v_status text := 'REGISTERED';
BEGIN
  PERFORM slotkeeper_refuse_table(p_queue_depth_table_name, 'upstream_ip_queue_depth');
  h := slotkeeper_open(v_host, v_name, 5);
  d := slotkeeper_depths(v_host, v_bucket, h.last_now);
  IF d.host >= slotkeeper_or_unlimited(p_max_waiters_per_host) THEN
    v_status := 'HOST_QUEUE_FULL';
  ELSIF d.bucket >= slotkeeper_or_unlimited(p_max_waiters_per_ip) THEN
    v_status := 'QUEUE_FULL';
  ELSE
    d := slotkeeper_count_waiter(h, v_bucket, v_lasts_ms, v_name);
  END IF;
  RETURN QUERY SELECT v_status, d.host, d.bucket;
END $$;

-- Removes one waiter: the one that would expire first. The count does not go below zero.
CREATE FUNCTION download_release_fq_waiter(
  p_hostname text, p_ip_bucket text, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET enable_seqscan = off AS $$
DECLARE
  v_bucket text := coalesce(p_ip_bucket, '');
  h slotkeeper_host;
BEGIN
  PERFORM slotkeeper_refuse_table(p_queue_depth_table_name, 'upstream_ip_queue_depth');
  h := slotkeeper_find(coalesce((
    SELECT hostname_pattern FROM upstream_ip_queue_depth
    WHERE hostname = slotkeeper_plain_name(p_hostname) AND ip_hash = v_bucket AND waiting_count > 0 LIMIT 1
  ), slotkeeper_pattern_key(p_hostname)));
  IF h.host IS NULL THEN RETURN; END IF;
  UPDATE upstream_ip_queue_depth d SET expiries = n.expiries, waiting_count = cardinality(n.expiries),
    updated_at = to_timestamp(h.last_now / 1000)
  FROM (
    SELECT ARRAY(SELECT e FROM unnest(q.expiries) e WHERE e > h.last_now ORDER BY e OFFSET 1) AS expiries
    FROM upstream_ip_queue_depth q WHERE q.hostname_pattern = h.host AND q.ip_hash = v_bucket
  ) n
  WHERE d.hostname_pattern = h.host AND d.ip_hash = v_bucket;
END $$;

-- Whether callers should not use the host: the breaker opened less than p_throttle_time_window seconds ago.
CREATE FUNCTION download_check_throttle_protection(
  p_hostname_hash text, p_hostname text, p_throttle_time_window integer DEFAULT 60,
  p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION'
) RETURNS TABLE (is_protected boolean, error_code integer, retry_after integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off AS $$
DECLARE
  v_window_ms double precision := slotkeeper_open_ms(p_throttle_time_window);
  v_now double precision := slotkeeper_now();
  b "THROTTLE_PROTECTION";
BEGIN
  PERFORM slotkeeper_refuse_table(p_throttle_table_name, 'THROTTLE_PROTECTION');
  b := slotkeeper_breaker(slotkeeper_host_key(p_hostname_hash, p_hostname), v_now);
  IF v_now - b.opened_at < v_window_ms THEN
    RETURN QUERY SELECT true, coalesce(b."LAST_ERROR_CODE", 0), greatest(1, ceil((v_window_ms - (v_now - b.opened_at)) / 1000))::integer;
  ELSE
    RETURN QUERY SELECT false, NULL::integer, NULL::integer;
  END IF;
END $$;

-- Reports an answer of the upstream, with the thresholds of the caller. Returns the breaker's row.
CREATE FUNCTION download_upsert_throttle_protection(
  p_hostname_hash text, p_hostname text, p_now integer, p_is_error boolean, p_status_code integer,
  p_throttle_time_window integer, p_observe_window_seconds integer, p_error_ratio_percent integer,
  p_consecutive_threshold integer, p_min_sample_count integer, p_fast_error_ratio_percent integer DEFAULT NULL,
  p_fast_min_sample_count integer DEFAULT NULL, p_table_name text DEFAULT 'THROTTLE_PROTECTION'
) RETURNS TABLE (
  "HOSTNAME_HASH" text, "HOSTNAME" text, "ERROR_TIMESTAMP" integer, "IS_PROTECTED" integer, "LAST_ERROR_CODE" integer,
  "OBS_WINDOW_START" integer, "OBS_ERROR_COUNT" integer, "OBS_SUCCESS_COUNT" integer, "CONSECUTIVE_ERROR_COUNT" integer
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET extra_float_digits = 1
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  v_host text := slotkeeper_host_key(p_hostname_hash, p_hostname);
  v_name text := slotkeeper_plain_name(p_hostname);
  t slotkeeper_thresholds := ROW(slotkeeper_open_ms(p_throttle_time_window),
    greatest(0, coalesce(p_observe_window_seconds, 60)) * 1000.0, coalesce(p_error_ratio_percent, 100),
    coalesce(p_min_sample_count, 0), p_fast_error_ratio_percent,
    CASE WHEN p_fast_error_ratio_percent IS NULL THEN 0 ELSE coalesce(p_fast_min_sample_count, 0) END,
    coalesce(p_consecutive_threshold, 0));
  h slotkeeper_host;
  v_next jsonb;
BEGIN
  PERFORM slotkeeper_refuse_table(p_table_name, 'THROTTLE_PROTECTION');
  h := slotkeeper_open(v_host, v_name, 5);
  v_next := slotkeeper_report_direct(slotkeeper_breaker(v_host, h.last_now), coalesce(p_is_error, false),
    coalesce(p_status_code, 0), t, h.last_now);
  IF v_next IS NOT NULL THEN
    PERFORM slotkeeper_commit_direct(h, jsonb_build_object('breaker', v_next,
      'hostname', coalesce(slotkeeper_own_name(v_host, v_name), h.head ->> 'hostname')));
    -- Also a name beside a hash of the caller's own, which the service does not use.
    UPDATE "THROTTLE_PROTECTION" p SET "HOSTNAME" = v_name WHERE p."HOSTNAME_HASH" = v_host AND p."HOSTNAME" <> v_name;
  END IF;
  RETURN QUERY SELECT b."HOSTNAME_HASH", b."HOSTNAME", b."ERROR_TIMESTAMP", b."IS_PROTECTED", b."LAST_ERROR_CODE",
    b."OBS_WINDOW_START", b."OBS_ERROR_COUNT", b."OBS_SUCCESS_COUNT", b."CONSECUTIVE_ERROR_COUNT"
  FROM "THROTTLE_PROTECTION" b WHERE b."HOSTNAME_HASH" = v_host;
END $$;

-- Returns the id of a slot; 0: the bucket is at its limit or in its cooldown; -1: no slot is free.
CREATE FUNCTION func_try_acquire_slot(
  p_hostname_pattern text, p_ip_hash text, p_global_limit integer, p_per_ip_limit integer, p_zombie_timeout_seconds integer,
  p_cooldown_seconds integer
) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET extra_float_digits = 1
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  t slotkeeper_try := ROW(slotkeeper_pattern_key(p_hostname_pattern),
    CASE WHEN p_hostname_pattern !~* '^[0-9a-f]{64}$' THEN slotkeeper_plain_name(p_hostname_pattern) END,
    slotkeeper_checked('p_ip_hash', coalesce(p_ip_hash, ''), 255),
    slotkeeper_required('p_global_limit', p_global_limit, 0),
    slotkeeper_or_unlimited(p_per_ip_limit),
    slotkeeper_required('p_zombie_timeout_seconds', p_zombie_timeout_seconds, 1) * 1000,
    greatest(0, coalesce(p_cooldown_seconds, 0)) * 1000.0, NULL, true);
  a slotkeeper_answer := slotkeeper_try_direct(t);
BEGIN
  RETURN CASE a.status WHEN 'ACQUIRED' THEN a.slot_id WHEN 'IP_TOO_MANY' THEN 0 ELSE -1 END;
END $$;

-- Releases a slot that func_try_acquire_slot granted, and nothing else.
CREATE FUNCTION func_release_fair_slot(p_slot_id integer, p_enable_cooldown boolean DEFAULT true) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET extra_float_digits = 1
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  h slotkeeper_host := slotkeeper_find((SELECT hostname_pattern FROM upstream_slot_pool WHERE id = p_slot_id));
  s upstream_slot_pool;
BEGIN
  IF h.host IS NULL THEN RETURN; END IF;
  SELECT * INTO s FROM upstream_slot_pool
  WHERE id = p_slot_id AND hostname_pattern = h.host AND starts_with(session, 'direct-id:') AND ends_at > h.last_now AND NOT is_released;
  IF FOUND THEN PERFORM slotkeeper_release_direct(h, s, coalesce(p_enable_cooldown, true)); END IF;
END $$;

-- Frees leases that have ended. A lease keeps the length it was granted for, whatever the argument is. A locked host is
-- in use and is skipped. Returns the number of freed slots.
CREATE FUNCTION func_cleanup_zombie_slots(p_zombie_timeout_seconds integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET extra_float_digits = 1 AS $$
DECLARE
  v_timeout_ms double precision := slotkeeper_required('p_zombie_timeout_seconds', p_zombie_timeout_seconds, 0) * 1000;
  v_freed integer := 0;
  v_host text;
  h slotkeeper_host;
  v slotkeeper_view;
BEGIN
  FOR v_host IN
    SELECT DISTINCT hostname_pattern FROM upstream_slot_pool s
    WHERE s.status = 'locked' AND slotkeeper_is_over(s, slotkeeper_now(), v_timeout_ms)
  LOOP
    SELECT * INTO h FROM slotkeeper_host WHERE host = v_host FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    h.last_now := greatest(slotkeeper_now(), h.last_now);
    v := slotkeeper_look(h, '', v_timeout_ms);
    CONTINUE WHEN v.dels = '[]';
    v_freed := v_freed + jsonb_array_length(v.dels);
    PERFORM slotkeeper_commit_direct(h, '{}', v.puts, v.dels);
  END LOOP;
  RETURN v_freed;
END $$;

-- Deletes releases that are older than the argument. Skips rows in use, and keeps cooldowns of the service that still
-- run.
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

-- Deletes counts of waiters that have expired, or that were last updated longer ago than the argument.
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

REVOKE ALL ON FUNCTION download_try_acquire_slot, download_release_slot, download_register_fq_waiter, download_release_fq_waiter,
  download_check_throttle_protection, download_upsert_throttle_protection, func_try_acquire_slot, func_release_fair_slot,
  func_cleanup_zombie_slots, func_cleanup_ip_cooldown, func_cleanup_queue_depth FROM PUBLIC;
DO $$
DECLARE
  r record;
BEGIN
  FOR r IN SELECT DISTINCT p.oid::regprocedure AS function, g.role FROM pg_proc p JOIN original_grant g USING (proname)
    WHERE p.pronamespace = quote_ident(current_schema())::regnamespace
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', r.function, r.role);
  END LOOP;
END $$;
