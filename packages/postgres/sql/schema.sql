-- The schema that all migrations make, for reading and for the test that compares it; `slotkeeper migrate` does not use it.
-- Written by scripts/dump-schema.mjs.

CREATE TYPE slotkeeper_books AS (
  ledger slotkeeper_ledger,
  account slotkeeper_account
);

CREATE TYPE slotkeeper_breaker AS (
  opened_at double precision,
  code integer,
  window_start_at double precision,
  errors integer,
  successes integer,
  consecutive integer
);

CREATE TYPE slotkeeper_depths AS (
  host integer,
  bucket integer
);

CREATE TYPE slotkeeper_direct_answer AS (
  status text,
  slot_id integer,
  token text,
  depths slotkeeper_depths,
  code integer,
  retry_in_ms double precision
);

CREATE TYPE slotkeeper_direct_round AS (
  h slotkeeper_host,
  a slotkeeper_direct_answer
);

CREATE TYPE slotkeeper_ended AS (
  h slotkeeper_host,
  freed text[]
);

CREATE TYPE slotkeeper_entry AS (
  session text,
  bucket text,
  weight double precision,
  arrived_at double precision,
  ttl_ms double precision,
  open_ms double precision,
  is_grantable boolean,
  account slotkeeper_account,
  cool_until double precision,
  seen_at double precision,
  owner text,
  was_grantable boolean,
  ending text,
  slot_id integer,
  token text,
  fence bigint,
  ends_at double precision,
  account_no integer,
  is_pooled boolean,
  is_granted boolean,
  is_probe boolean,
  status text,
  blocked_by text,
  retry_in_ms double precision
);

CREATE TYPE slotkeeper_ledger AS (
  slots double precision,
  progress double precision,
  as_of double precision,
  active_weight double precision,
  in_flight integer,
  waiting integer,
  demand double precision,
  contending_weight double precision,
  contending_held integer
);

CREATE TYPE slotkeeper_policy AS (
  slots double precision,
  slots_per_bucket double precision,
  waiters double precision,
  waiters_per_bucket double precision,
  lease_ms double precision,
  max_hold_ms double precision,
  cooldown_ms double precision,
  min_hold_ms double precision,
  smooth_ms double precision,
  sequence text,
  breaker_window_ms double precision,
  breaker_codes integer[],
  breaker_ratio_percent double precision,
  breaker_min_samples double precision,
  breaker_fast_ratio_percent double precision,
  breaker_fast_min_samples double precision,
  breaker_consecutive double precision,
  breaker_open_ms double precision,
  breaker_probes double precision
);

CREATE TYPE slotkeeper_rank AS (
  held integer,
  weight double precision,
  used_ms double precision,
  head_at double precision,
  zone integer
);

CREATE TYPE slotkeeper_returns AS (
  h slotkeeper_host,
  slots upstream_slot_pool[],
  buckets text[],
  accounts slotkeeper_account[],
  freed integer[],
  replies jsonb[]
);

CREATE TYPE slotkeeper_round AS (
  h slotkeeper_host,
  instance text,
  breaker slotkeeper_breaker,
  entries slotkeeper_entry[],
  accounts slotkeeper_account[],
  buckets text[],
  displaced text[],
  slots integer[],
  granted integer
);

CREATE SEQUENCE upstream_slot_pool_id_seq AS integer INCREMENT 1;

CREATE TABLE "THROTTLE_PROTECTION" (
  "CONSECUTIVE_ERROR_COUNT" integer NOT NULL DEFAULT 0,
  "ERROR_TIMESTAMP" integer,
  "HOSTNAME" text NOT NULL DEFAULT ''::text,
  "HOSTNAME_HASH" text NOT NULL,
  "IS_PROTECTED" integer,
  "LAST_ERROR_CODE" integer,
  "OBS_ERROR_COUNT" integer NOT NULL DEFAULT 0,
  "OBS_SUCCESS_COUNT" integer NOT NULL DEFAULT 0,
  "OBS_WINDOW_START" integer,
  opened_at double precision,
  window_start_at double precision,
  CONSTRAINT "THROTTLE_PROTECTION_pkey" PRIMARY KEY ("HOSTNAME_HASH")
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE slotkeeper_account (
  as_of double precision NOT NULL,
  bucket text NOT NULL,
  contends boolean NOT NULL,
  demand double precision NOT NULL,
  host text NOT NULL,
  in_flight integer NOT NULL,
  used_ms double precision NOT NULL,
  waiting integer NOT NULL,
  weight double precision NOT NULL,
  CONSTRAINT slotkeeper_account_pkey PRIMARY KEY (host, bucket)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE slotkeeper_fence_floor (
  fence bigint NOT NULL,
  id smallint NOT NULL,
  CONSTRAINT slotkeeper_fence_floor_id_check CHECK ((id = 1)),
  CONSTRAINT slotkeeper_fence_floor_pkey PRIMARY KEY (id)
);

CREATE TABLE slotkeeper_host (
  capacity double precision,
  direct_waiting integer NOT NULL DEFAULT 0,
  fence bigint NOT NULL,
  host text NOT NULL,
  last_end_at double precision NOT NULL DEFAULT '-Infinity'::double precision,
  ledger slotkeeper_ledger NOT NULL,
  live_slots double precision,
  live_slots_per_bucket double precision,
  next_end_at double precision NOT NULL DEFAULT 'Infinity'::double precision,
  next_silent_at double precision NOT NULL DEFAULT 'Infinity'::double precision,
  policy slotkeeper_policy NOT NULL,
  probes integer NOT NULL DEFAULT 0,
  touched_at double precision NOT NULL,
  CONSTRAINT slotkeeper_host_pkey PRIMARY KEY (host)
) WITH (fillfactor=25, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE slotkeeper_host_name (
  host text NOT NULL,
  hostname text NOT NULL,
  CONSTRAINT slotkeeper_host_name_pkey PRIMARY KEY (hostname)
);

CREATE TABLE slotkeeper_migration (
  applied_at timestamp with time zone NOT NULL DEFAULT now(),
  checksum text NOT NULL,
  name text NOT NULL,
  number integer NOT NULL,
  CONSTRAINT slotkeeper_migration_pkey PRIMARY KEY (number)
);

CREATE TABLE slotkeeper_session (
  ending text,
  fence bigint,
  host text NOT NULL,
  keep_until double precision NOT NULL,
  session text NOT NULL,
  slot_id integer,
  CONSTRAINT slotkeeper_session_check CHECK ((((slot_id IS NULL) = (fence IS NULL)) AND ((slot_id IS NULL) <> (ending IS NULL)))),
  CONSTRAINT slotkeeper_session_ending_check CHECK ((ending = ANY (ARRAY['timeout'::text, 'canceled'::text, 'throttled'::text, 'released'::text]))),
  CONSTRAINT slotkeeper_session_pkey PRIMARY KEY (host, session)
) WITH (fillfactor=90, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, autovacuum_vacuum_insert_threshold=-1);

CREATE TABLE slotkeeper_token_key (
  id smallint NOT NULL,
  secret text NOT NULL,
  CONSTRAINT slotkeeper_token_key_id_check CHECK ((id = 1)),
  CONSTRAINT slotkeeper_token_key_pkey PRIMARY KEY (id)
);

CREATE TABLE slotkeeper_waiter (
  arrived_at double precision NOT NULL,
  bucket text NOT NULL,
  host text NOT NULL,
  instance text NOT NULL,
  is_grantable boolean NOT NULL,
  seen_at double precision NOT NULL,
  session text NOT NULL,
  CONSTRAINT slotkeeper_waiter_pkey PRIMARY KEY (host, session)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, autovacuum_vacuum_insert_threshold=-1);

CREATE TABLE upstream_ip_cooldown (
  cool_until double precision,
  hostname_pattern text NOT NULL,
  ip_hash text NOT NULL,
  last_release_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT upstream_ip_cooldown_pkey PRIMARY KEY (hostname_pattern, ip_hash)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE upstream_ip_queue_depth (
  expires_at double precision NOT NULL DEFAULT 0,
  expiries double precision[] NOT NULL DEFAULT '{}'::double precision[],
  hostname_pattern text NOT NULL,
  ip_hash text NOT NULL,
  updated_at timestamp with time zone NOT NULL DEFAULT now(),
  waiting_count integer NOT NULL DEFAULT 0,
  CONSTRAINT upstream_ip_queue_depth_pkey PRIMARY KEY (hostname_pattern, ip_hash)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE upstream_slot_pool (
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  ends_at double precision,
  fence bigint,
  granted_at double precision,
  granted_by text,
  hostname_pattern text NOT NULL,
  id integer NOT NULL DEFAULT nextval('upstream_slot_pool_id_seq'::regclass),
  instance text,
  ip_hash text,
  is_probe boolean NOT NULL DEFAULT false,
  is_released boolean NOT NULL DEFAULT false,
  is_shared boolean NOT NULL DEFAULT false,
  locked_at timestamp with time zone,
  session text,
  slot_index integer NOT NULL,
  status text NOT NULL DEFAULT 'available'::text,
  token text,
  CONSTRAINT upstream_slot_pool_pkey PRIMARY KEY (id)
) WITH (fillfactor=40, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE INDEX slotkeeper_session_keep ON slotkeeper_session USING btree (((host || ''::text)), keep_until);

CREATE UNIQUE INDEX upstream_slot_pool_slot ON upstream_slot_pool USING btree (hostname_pattern, slot_index);

COMMENT ON TABLE slotkeeper_account IS 'Account in packages/queue/src/order/state.ts. waiting counts slotkeeper_waiter only. An idle row that the meter has passed counts as none.';

COMMENT ON COLUMN slotkeeper_host.capacity IS 'What the live users of a named semaphore fixed.';

COMMENT ON COLUMN slotkeeper_host.direct_waiting IS 'Above 0: upstream_ip_queue_depth may have live rows of this host, and is asked. 0: it has none.';

COMMENT ON COLUMN slotkeeper_host.next_end_at IS 'No lease ends before it. A lower bound: settling looks only when it has come.';

COMMENT ON COLUMN slotkeeper_host.next_silent_at IS 'No waiter falls silent before it. A lower bound.';

COMMENT ON COLUMN slotkeeper_host.policy IS 'In force: what instances brought last, with capacity and live limits put in.';

COMMENT ON COLUMN slotkeeper_host.probes IS 'Leases that are half-open probes.';

COMMENT ON COLUMN slotkeeper_host.touched_at IS 'The moment of the last call, by the clock as read under its lock.';

COMMENT ON TABLE slotkeeper_host_name IS 'Names whose waiters are counted under a key that is not the name''s SHA-256.';

COMMENT ON TABLE slotkeeper_session IS 'Its lease, which is over unless the slot still has this fence; or its end. Asked for by session: granted once in its life.';

COMMENT ON COLUMN upstream_ip_queue_depth.expiries IS 'When each counted waiter stops counting, ascending. waiting_count is their number when last written, expires_at the last.';

CREATE OR REPLACE FUNCTION download_check_throttle_protection(p_hostname_hash text, p_hostname text, p_throttle_time_window integer DEFAULT 60, p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION'::text)
 RETURNS TABLE(is_protected boolean, error_code integer, retry_after integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$
;

CREATE OR REPLACE FUNCTION download_register_fq_waiter(p_hostname_hash text, p_hostname text, p_ip_bucket text, p_max_waiters_per_ip integer DEFAULT 0, p_zombie_timeout_seconds integer DEFAULT 20, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text, p_max_waiters_per_host integer DEFAULT 0)
 RETURNS TABLE(status text, queue_depth integer, ip_queue_depth integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
    d := slotkeeper_count_waiter(h, v_bucket, v_lasts_ms);
    h.direct_waiting := greatest(1, h.direct_waiting);
    IF v_host <> slotkeeper_host_key(NULL, coalesce(nullif(p_hostname, ''), v_host)) AND p_hostname <> '' THEN
      INSERT INTO slotkeeper_host_name AS n VALUES (slotkeeper_lower(p_hostname), v_host)
      ON CONFLICT (hostname) DO UPDATE SET host = excluded.host WHERE n.host <> excluded.host;
    END IF;
  END IF;
  PERFORM slotkeeper_close(h);
  RETURN QUERY SELECT v_status, d.host, d.bucket;
END $function$
;

CREATE OR REPLACE FUNCTION download_release_fq_waiter(p_hostname text, p_ip_bucket text, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  v_host text := coalesce(
    (SELECT host FROM slotkeeper_host_name WHERE hostname = slotkeeper_lower(p_hostname)), slotkeeper_pattern_key(p_hostname));
  h slotkeeper_host;
BEGIN
  PERFORM slotkeeper_refuse_table(p_queue_depth_table_name, 'upstream_ip_queue_depth');
  h := slotkeeper_find(v_host);
  IF h.host IS NULL THEN RETURN; END IF;
  UPDATE upstream_ip_queue_depth d SET expiries = n.expiries, waiting_count = cardinality(n.expiries),
    updated_at = to_timestamp(h.touched_at / 1000)
  FROM (
    SELECT ARRAY(
      SELECT e FROM unnest(q.expiries) e WHERE e > h.touched_at ORDER BY e OFFSET 1
    ) AS expiries FROM upstream_ip_queue_depth q WHERE q.hostname_pattern = h.host AND q.ip_hash = coalesce(p_ip_bucket, '')
  ) n
  WHERE d.hostname_pattern = h.host AND d.ip_hash = coalesce(p_ip_bucket, '');
  PERFORM slotkeeper_close(h);
END $function$
;

CREATE OR REPLACE FUNCTION download_release_slot(p_hostname_hash text, p_ip_bucket text, p_slot_token text, p_now_ms bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$
;

CREATE OR REPLACE FUNCTION download_try_acquire_slot(p_hostname_hash text, p_hostname text, p_ip_bucket text, p_now_ms bigint, p_max_slot_per_host integer, p_max_slot_per_ip integer, p_max_waiters_per_ip integer DEFAULT 0, p_zombie_timeout integer DEFAULT 30, p_cooldown_seconds integer DEFAULT 0, p_throttle_time_window integer DEFAULT 60, p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION'::text, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text)
 RETURNS TABLE(status text, slot_token text, queue_depth integer, ip_queue_depth integer, throttle_code integer, throttle_retry_after integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$
;

CREATE OR REPLACE FUNCTION download_upsert_throttle_protection(p_hostname_hash text, p_hostname text, p_now integer, p_is_error boolean, p_status_code integer, p_throttle_time_window integer, p_observe_window_seconds integer, p_error_ratio_percent integer, p_consecutive_threshold integer, p_min_sample_count integer, p_fast_error_ratio_percent integer DEFAULT NULL::integer, p_fast_min_sample_count integer DEFAULT NULL::integer, p_table_name text DEFAULT 'THROTTLE_PROTECTION'::text)
 RETURNS TABLE("HOSTNAME_HASH" text, "HOSTNAME" text, "ERROR_TIMESTAMP" integer, "IS_PROTECTED" integer, "LAST_ERROR_CODE" integer, "OBS_WINDOW_START" integer, "OBS_ERROR_COUNT" integer, "OBS_SUCCESS_COUNT" integer, "CONSECUTIVE_ERROR_COUNT" integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$
;

CREATE OR REPLACE FUNCTION func_cleanup_ip_cooldown(p_ttl_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  v_ttl_ms double precision := slotkeeper_required('p_ttl_seconds', p_ttl_seconds, 0) * 1000;
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_cooldown
  WHERE extract(epoch FROM last_release_at) * 1000 <= slotkeeper_now() - v_ttl_ms AND coalesce(cool_until, 0) <= slotkeeper_now();
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $function$
;

CREATE OR REPLACE FUNCTION func_cleanup_queue_depth(p_ttl_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  v_ttl_ms double precision := slotkeeper_required('p_ttl_seconds', p_ttl_seconds, 0) * 1000;
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_queue_depth
  WHERE expires_at <= slotkeeper_now() OR waiting_count = 0 OR extract(epoch FROM updated_at) * 1000 <= slotkeeper_now() - v_ttl_ms;
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  DELETE FROM slotkeeper_host_name n WHERE NOT EXISTS (SELECT FROM upstream_ip_queue_depth WHERE hostname_pattern = n.host);
  RETURN v_gone;
END $function$
;

CREATE OR REPLACE FUNCTION func_cleanup_zombie_slots(p_zombie_timeout_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$
;

CREATE OR REPLACE FUNCTION func_release_fair_slot(p_slot_id integer, p_enable_cooldown boolean DEFAULT true)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
DECLARE
  h slotkeeper_host := slotkeeper_find((SELECT hostname_pattern FROM upstream_slot_pool WHERE id = p_slot_id));
  v_slot upstream_slot_pool;
BEGIN
  IF h.host IS NULL THEN RETURN; END IF;
  SELECT * INTO v_slot FROM upstream_slot_pool
  WHERE id = p_slot_id AND hostname_pattern = h.host AND granted_by = 'id' AND status = 'locked' AND NOT is_released;
  IF FOUND THEN PERFORM slotkeeper_release_direct(h, v_slot, coalesce(p_enable_cooldown, true)); ELSE PERFORM slotkeeper_close(h); END IF;
END $function$
;

CREATE OR REPLACE FUNCTION func_try_acquire_slot(p_hostname_pattern text, p_ip_hash text, p_global_limit integer, p_per_ip_limit integer, p_zombie_timeout_seconds integer, p_cooldown_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
AS $function$
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
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_account_views(r slotkeeper_round)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
DECLARE
  e slotkeeper_entry;
  v_weights double precision[];
  v_views jsonb := '[]';
  a slotkeeper_account;
BEGIN
  FOREACH e IN ARRAY r.entries LOOP
    v_weights[e.account_no] := e.weight;
  END LOOP;
  FOR n IN 1 .. coalesce(cardinality(r.accounts), 0) LOOP
    a := r.accounts[n];
    v_views := v_views || jsonb_build_object('bucket', a.bucket, 'inFlight', a.in_flight,
      'usedMs', slotkeeper_used((r.h).ledger, a, v_weights[n], (r.h).touched_at));
  END LOOP;
  RETURN v_views;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_admit(r slotkeeper_round, p_may_grant boolean)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  e slotkeeper_entry;
  v_now double precision := h.touched_at;
  v_open_for double precision := v_now - (r.breaker).opened_at;
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    e := r.entries[i];
    IF e.ending IS NOT NULL THEN
      e.status := 'ENDED';
    ELSIF e.slot_id IS NOT NULL THEN
      e.status := 'ACQUIRED';
    ELSIF v_open_for < e.open_ms THEN
      e.status := 'THROTTLED';
      e.retry_in_ms := e.open_ms - v_open_for;
    ELSIF NOT e.is_pooled THEN
      r.entries[i] := e;
      r := slotkeeper_join(r, i);
      e := r.entries[i];
    END IF;
    IF e.status IS NULL AND NOT (p_may_grant AND e.is_grantable) THEN e.status := 'WAIT'; END IF;
    r.entries[i] := e;
  END LOOP;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_adopt(h slotkeeper_host, p slotkeeper_policy, p_is_semaphore boolean)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
DECLARE
  l slotkeeper_ledger := h.ledger;
BEGIN
  IF p_is_semaphore AND h.capacity IS NULL THEN h.capacity := p.slots; END IF;
  p.slots := coalesce(h.capacity, h.live_slots, p.slots);
  p.slots_per_bucket := coalesce(h.live_slots_per_bucket, p.slots_per_bucket);
  h.policy := p;
  l.slots := p.slots;
  h.ledger := l;
  RETURN h;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_advance(l slotkeeper_ledger, p_at double precision)
 RETURNS slotkeeper_ledger
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
BEGIN
  IF p_at > l.as_of THEN
    IF l.active_weight > 0 THEN
      l.progress := l.progress + least(l.slots, l.demand) / l.active_weight * (p_at - l.as_of);
    END IF;
    l.as_of := p_at;
  END IF;
  RETURN l;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_answer(r slotkeeper_round, e slotkeeper_entry)
 RETURNS slotkeeper_entry
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  p slotkeeper_policy := h.policy;
BEGIN
  -- Still open for this session's own window was answered when it was admitted: what is left of an open one is half open.
  e.is_probe := (r.breaker).opened_at IS NOT NULL;
  IF e.is_probe AND h.probes >= p.breaker_probes THEN
    e.status := 'WAIT';
    e.blocked_by := 'breaker';
  ELSIF (r.accounts[e.account_no]).in_flight >= slotkeeper_bucket_limit(p, e.bucket) THEN
    e.status := 'IP_TOO_MANY';
    e.blocked_by := 'ip-limit';
    e.retry_in_ms := least(
      slotkeeper_first_end(h.host, e.bucket),
      (SELECT min(g.ends_at) FROM unnest(r.entries) g WHERE g.is_granted AND g.bucket = e.bucket)
    ) - h.touched_at;
  ELSIF e.cool_until > h.touched_at AND e.bucket <> '' THEN
    e.status := 'IP_TOO_MANY';
    e.blocked_by := 'cooldown';
    e.retry_in_ms := e.cool_until - h.touched_at;
  ELSE
    e.status := 'ACQUIRED';
  END IF;
  RETURN e;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_answer_elsewhere(p_hosts text[], p_replies jsonb[])
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT jsonb_agg(coalesce(p_replies[at], CASE WHEN host IS NULL THEN '{"isReleased": false}'::jsonb
    ELSE jsonb_build_object('elsewhere', host) END) ORDER BY at)
  FROM unnest(p_hosts) WITH ORDINALITY AS t (host, at)
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_best(r slotkeeper_round)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  l slotkeeper_ledger := h.ledger;
  v_level double precision := slotkeeper_level(l);
  v_is_fifo boolean := (h.policy).sequence = 'fifo';
  a slotkeeper_account;
  e slotkeeper_entry;
  v_rank slotkeeper_rank;
  v_best_rank slotkeeper_rank;
  v_best integer;
  v_heads integer[];
  v_head integer;
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    e := r.entries[i];
    CONTINUE WHEN e.status IS NOT NULL;
    v_head := v_heads[e.account_no];
    IF v_head IS NULL OR e.arrived_at < (r.entries[v_head]).arrived_at THEN v_heads[e.account_no] := i; END IF;
  END LOOP;
  FOR n IN 1 .. coalesce(array_upper(v_heads, 1), 0) LOOP
    CONTINUE WHEN v_heads[n] IS NULL;
    e := r.entries[v_heads[n]];
    a := r.accounts[n];
    v_rank.held := a.in_flight;
    v_rank.weight := e.weight;
    v_rank.used_ms := a.used_ms + a.in_flight * (h.touched_at - a.as_of);
    v_rank.head_at := e.arrived_at;
    v_rank.zone := slotkeeper_zone(a.in_flight, e.weight, v_level);
    IF v_best IS NULL
      OR (v_is_fifo AND v_rank.head_at < v_best_rank.head_at)
      OR (NOT v_is_fifo AND slotkeeper_ranks_before(v_rank, v_best_rank, h.touched_at))
    THEN
      v_best := v_heads[n];
      v_best_rank := v_rank;
    END IF;
  END LOOP;
  RETURN v_best;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_breaker_closed()
 RETURNS slotkeeper_breaker
 LANGUAGE sql
 IMMUTABLE
AS $function$ SELECT ROW(NULL, 0, NULL, 0, 0, 0)::slotkeeper_breaker $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_breaker_is_tripped(b slotkeeper_breaker, p slotkeeper_policy)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
DECLARE
  v_total integer := b.errors + b.successes;
  v_percent double precision;
BEGIN
  IF b.consecutive = 0 THEN RETURN false; END IF;
  v_percent := 100::double precision * b.errors / v_total;
  RETURN (p.breaker_consecutive > 0 AND b.consecutive >= p.breaker_consecutive)
    OR (p.breaker_min_samples > 0 AND v_total >= p.breaker_min_samples AND v_percent >= p.breaker_ratio_percent)
    OR (p.breaker_fast_min_samples > 0 AND v_total >= p.breaker_fast_min_samples
        AND v_percent >= p.breaker_fast_ratio_percent);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_breaker_opened(p_code integer, p_now double precision)
 RETURNS slotkeeper_breaker
 LANGUAGE sql
 IMMUTABLE
AS $function$ SELECT ROW(p_now, p_code, NULL, 0, 0, 0)::slotkeeper_breaker $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_breaker_read(p_host text, p_now double precision, p_open_ms double precision)
 RETURNS slotkeeper_breaker
 LANGUAGE plpgsql
AS $function$
DECLARE
  b slotkeeper_breaker;
BEGIN
  SELECT opened_at, coalesce("LAST_ERROR_CODE", 0), window_start_at,
    "OBS_ERROR_COUNT", "OBS_SUCCESS_COUNT", "CONSECUTIVE_ERROR_COUNT" INTO b
  FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = p_host;
  IF NOT FOUND OR p_now - b.opened_at >= 2 * p_open_ms THEN RETURN slotkeeper_breaker_closed(); END IF;
  RETURN b;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_breaker_report(p_host text, p slotkeeper_policy, p_status integer, p_is_probe boolean, p_now double precision)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_is_error boolean := p_status = ANY (p.breaker_codes);
  b slotkeeper_breaker;
BEGIN
  IF NOT v_is_error AND p_status NOT BETWEEN 200 AND 399 THEN RETURN; END IF;
  b := slotkeeper_breaker_read(p_host, p_now, p.breaker_open_ms);
  IF b.opened_at IS NULL THEN
    IF b.window_start_at IS NULL OR p_now - b.window_start_at > p.breaker_window_ms THEN
      b := ROW(NULL, 0, p_now, 0, 0, 0)::slotkeeper_breaker;
    END IF;
    IF v_is_error THEN
      b.errors := b.errors + 1;
      b.consecutive := b.consecutive + 1;
      b.code := p_status;
    ELSE
      b.successes := b.successes + 1;
      b.consecutive := 0;
    END IF;
    IF slotkeeper_breaker_is_tripped(b, p) THEN b := slotkeeper_breaker_opened(p_status, p_now); END IF;
  ELSIF p_is_probe OR p_now - b.opened_at >= p.breaker_open_ms THEN
    b := CASE WHEN v_is_error THEN slotkeeper_breaker_opened(p_status, p_now) ELSE slotkeeper_breaker_closed() END;
  ELSE
    -- Late answers of old requests teach an open breaker nothing.
    RETURN;
  END IF;
  PERFORM slotkeeper_breaker_write(p_host, b);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_breaker_view(b slotkeeper_breaker, p_now double precision)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN b.opened_at IS NULL THEN '{"phase": "closed"}'
    ELSE jsonb_build_object('phase', 'open', 'code', b.code, 'openForMs', p_now - b.opened_at) END
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_breaker_write(p_host text, b slotkeeper_breaker)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  INSERT INTO "THROTTLE_PROTECTION" AS t ("HOSTNAME_HASH", "HOSTNAME", "ERROR_TIMESTAMP", "IS_PROTECTED",
    "LAST_ERROR_CODE", "OBS_WINDOW_START", "OBS_ERROR_COUNT", "OBS_SUCCESS_COUNT", "CONSECUTIVE_ERROR_COUNT",
    opened_at, window_start_at)
  VALUES (p_host, p_host, floor(b.opened_at / 1000), (b.opened_at IS NOT NULL)::integer,
    nullif(b.code, 0), floor(b.window_start_at / 1000), b.errors, b.successes, b.consecutive,
    b.opened_at, b.window_start_at)
  ON CONFLICT ("HOSTNAME_HASH") DO UPDATE SET
    "ERROR_TIMESTAMP" = coalesce(excluded."ERROR_TIMESTAMP", t."ERROR_TIMESTAMP"),
    "IS_PROTECTED" = excluded."IS_PROTECTED",
    "LAST_ERROR_CODE" = excluded."LAST_ERROR_CODE",
    "OBS_WINDOW_START" = excluded."OBS_WINDOW_START",
    "OBS_ERROR_COUNT" = excluded."OBS_ERROR_COUNT",
    "OBS_SUCCESS_COUNT" = excluded."OBS_SUCCESS_COUNT",
    "CONSECUTIVE_ERROR_COUNT" = excluded."CONSECUTIVE_ERROR_COUNT",
    opened_at = excluded.opened_at,
    window_start_at = excluded.window_start_at;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_bucket_limit(p slotkeeper_policy, p_bucket text)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
AS $function$ SELECT CASE WHEN p_bucket = '' THEN 'Infinity' ELSE p.slots_per_bucket END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_check_throttle(p_host text, p_open_ms double precision)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'breaker', slotkeeper_breaker_view(slotkeeper_breaker_read(p_host, v_now, p_open_ms), v_now),
    'capacity', (
      SELECT capacity FROM slotkeeper_host WHERE host = p_host AND capacity IS NOT NULL AND (
        EXISTS (SELECT FROM upstream_slot_pool WHERE hostname_pattern = p_host AND status = 'locked' AND ends_at > v_now)
        OR EXISTS (SELECT FROM slotkeeper_waiter WHERE host = p_host AND seen_at >= v_now - slotkeeper_silence_ms()))
    )
  ));
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_checked(p_argument text, p_value text, p_most integer)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
BEGIN
  IF char_length(p_value) > p_most OR p_value ~ '[\x01-\x1f\x7f]' THEN
    RAISE EXCEPTION 'Expected % to be at most % characters without control characters, got % characters',
      p_argument, p_most, char_length(p_value) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN p_value;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_close(h slotkeeper_host)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE slotkeeper_host SET ledger = h.ledger, policy = h.policy, capacity = h.capacity, live_slots = h.live_slots,
    live_slots_per_bucket = h.live_slots_per_bucket, fence = h.fence, probes = h.probes, last_end_at = h.last_end_at,
    next_end_at = h.next_end_at, next_silent_at = h.next_silent_at, direct_waiting = h.direct_waiting,
    touched_at = h.touched_at
  WHERE host = h.host;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_conclude(r slotkeeper_round)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  v_now double precision := h.touched_at;
BEGIN
  PERFORM slotkeeper_write_grants(r);
  PERFORM slotkeeper_write_waiters(r);
  INSERT INTO slotkeeper_account AS t
  SELECT * FROM unnest(r.accounts) a WHERE a.in_flight + a.waiting > 0 OR cardinality(r.displaced) > 0
  ON CONFLICT (host, bucket) DO UPDATE SET weight = excluded.weight, in_flight = excluded.in_flight,
    waiting = excluded.waiting, used_ms = excluded.used_ms, as_of = excluded.as_of, demand = excluded.demand,
    contends = excluded.contends
  WHERE t IS DISTINCT FROM excluded;
  IF (h.ledger).waiting > 0 THEN h.next_silent_at := least(h.next_silent_at, v_now + slotkeeper_silence_ms()); END IF;
  h.next_end_at := slotkeeper_first_end(h.host, NULL);
  PERFORM slotkeeper_close(h);
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'verdicts', slotkeeper_verdicts(r),
    'displaced', to_jsonb(r.displaced),
    'accounts', slotkeeper_account_views(r),
    'level', slotkeeper_level(h.ledger),
    'free', greatest(0, (h.policy).slots - (h.ledger).in_flight),
    'freeInMs', CASE WHEN h.next_end_at < 'Infinity' THEN h.next_end_at - v_now END,
    'breaker', slotkeeper_breaker_view(r.breaker, v_now)
  ));
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_cool_down(h slotkeeper_host, p_bucket text, p_from double precision)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_cooldown_ms double precision := (h.policy).cooldown_ms;
BEGIN
  IF v_cooldown_ms <= 0 OR p_bucket = '' THEN RETURN; END IF;
  INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at, cool_until)
  VALUES (h.host, p_bucket, to_timestamp(p_from / 1000), p_from + v_cooldown_ms)
  ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET
    last_release_at = greatest(c.last_release_at, excluded.last_release_at),
    cool_until = greatest(c.cool_until, excluded.cool_until);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_cools_until(p_host text, p_bucket text, p_cooldown_ms double precision)
 RETURNS double precision
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  IF p_bucket = '' THEN RETURN 0; END IF;
  RETURN coalesce((
    SELECT greatest(cool_until, extract(epoch FROM last_release_at) * 1000 + p_cooldown_ms) FROM upstream_ip_cooldown
    WHERE hostname_pattern = p_host AND ip_hash = p_bucket
  ), 0);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_count_waiter(h slotkeeper_host, p_bucket text, p_lasts_ms double precision)
 RETURNS slotkeeper_depths
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_ends_at double precision := h.touched_at + p_lasts_ms;
BEGIN
  INSERT INTO upstream_ip_queue_depth AS d (hostname_pattern, ip_hash, waiting_count, updated_at, expires_at, expiries)
  VALUES (h.host, p_bucket, 1, to_timestamp(h.touched_at / 1000), v_ends_at, ARRAY[v_ends_at])
  ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET
    expiries = ARRAY(SELECT e FROM unnest(d.expiries || v_ends_at) e WHERE e > h.touched_at ORDER BY e),
    waiting_count = 1 + (SELECT count(*) FROM unnest(d.expiries) e WHERE e > h.touched_at),
    expires_at = greatest(d.expires_at, v_ends_at),
    updated_at = excluded.updated_at;
  h.direct_waiting := 1;
  RETURN slotkeeper_depths(h, p_bucket);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_decide(p_batch jsonb, p_may_grant boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
AS $function$
DECLARE
  r slotkeeper_round;
  h slotkeeper_host := slotkeeper_open(
    p_batch ->> 'host',
    jsonb_populate_record(NULL::slotkeeper_policy, p_batch -> 'policy'),
    (p_batch -> 'is_semaphore')::boolean
  );
BEGIN
  r.h := h;
  r.instance := p_batch ->> 'instance';
  r.breaker := slotkeeper_breaker_read(h.host, h.touched_at, (h.policy).breaker_open_ms);
  r.entries := slotkeeper_load(h, p_batch -> 'waiters');
  r.accounts := '{}';
  r.buckets := '{}';
  r.displaced := '{}';
  r.granted := 0;
  r := slotkeeper_load_accounts(r);
  r := slotkeeper_admit(r, p_may_grant);
  IF p_may_grant THEN r := slotkeeper_grant(r); END IF;
  RETURN slotkeeper_conclude(r);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_depths(h slotkeeper_host, p_bucket text)
 RETURNS slotkeeper_depths
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  RETURN ROW(
    (h.ledger).waiting + slotkeeper_direct_waiting(h),
    coalesce((SELECT waiting FROM slotkeeper_account WHERE host = h.host AND bucket = p_bucket), 0)
      + slotkeeper_direct_waiting(h, p_bucket)
  )::slotkeeper_depths;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_direct_policy(p_slots double precision, p_slots_per_bucket double precision, p_lease_ms double precision, p_open_ms double precision)
 RETURNS slotkeeper_policy
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT ROW(p_slots, p_slots_per_bucket, 'Infinity', 'Infinity', p_lease_ms, 3600000, 0, 0, 0, 'direct',
    60000, '{429,500,502,503,504}'::integer[], 20, 8, 50, 4, 4, p_open_ms, 1)::slotkeeper_policy
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_direct_waiting(h slotkeeper_host, p_bucket text DEFAULT NULL::text)
 RETURNS integer
 LANGUAGE plpgsql
 STABLE
AS $function$
BEGIN
  IF h.direct_waiting <= 0 THEN RETURN 0; END IF;
  RETURN (
    SELECT count(*) FROM upstream_ip_queue_depth d, unnest(d.expiries) e
    WHERE d.hostname_pattern = h.host AND d.expires_at > h.touched_at AND e > h.touched_at
      AND (p_bucket IS NULL OR d.ip_hash = p_bucket)
  );
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_displace(r slotkeeper_round, i integer, p_places integer)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  e slotkeeper_entry;
  s slotkeeper_books;
  r_victim record;
  v_no integer;
BEGIN
  r.entries := slotkeeper_write_joins(r, i - 1);
  WITH largest AS (
    SELECT bucket FROM slotkeeper_waiter WHERE host = h.host
    GROUP BY bucket HAVING count(*) >= p_places + 2 ORDER BY count(*) DESC, max(arrived_at) DESC LIMIT 1
  ), youngest AS (
    SELECT session FROM slotkeeper_waiter JOIN largest USING (bucket) WHERE host = h.host ORDER BY arrived_at DESC LIMIT 1
  )
  DELETE FROM slotkeeper_waiter w USING youngest y WHERE w.host = h.host AND w.session = y.session
  RETURNING w.session, w.bucket INTO r_victim;
  IF NOT FOUND THEN
    r.entries[i].status := 'QUEUE_FULL';
    RETURN r;
  END IF;
  r.displaced := r.displaced || r_victim.session::text;
  v_no := array_position(r.buckets, r_victim.bucket);
  IF v_no IS NULL THEN
    h := slotkeeper_move(h, r_victim.bucket, NULL, -1, 0);
  ELSE
    s := ROW(h.ledger, r.accounts[v_no])::slotkeeper_books;
    s := slotkeeper_shift(s, -1, 0, 0, slotkeeper_bucket_limit(h.policy, r_victim.bucket));
    r.accounts[v_no] := s.account;
    h.ledger := s.ledger;
  END IF;
  r.h := h;
  -- It may stand in this very batch, before or behind.
  FOR n IN 1 .. cardinality(r.entries) LOOP
    e := r.entries[n];
    CONTINUE WHEN e.session <> r_victim.session;
    e.is_pooled := false;
    e.seen_at := NULL;
    IF e.status IS NULL AND n < i THEN e.status := 'QUEUE_FULL'; END IF;
    r.entries[n] := e;
  END LOOP;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_end_lease(h slotkeeper_host, p_slot upstream_slot_pool, p_at double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
AS $function$
BEGIN
  h.ledger := slotkeeper_advance(h.ledger, p_at);
  PERFORM slotkeeper_free_rows(ARRAY[p_slot.id]);
  IF p_slot.is_probe THEN h.probes := h.probes - 1; END IF;
  RETURN slotkeeper_move(h, coalesce(p_slot.ip_hash, ''), NULL, 0, -1);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_end_of(h slotkeeper_host, p_hit_ago_ms double precision)
 RETURNS double precision
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
DECLARE
  p slotkeeper_policy := h.policy;
BEGIN
  RETURN least(h.touched_at + p.lease_ms, greatest(
    h.touched_at,
    h.touched_at - p_hit_ago_ms + p.min_hold_ms,
    CASE WHEN p.smooth_ms > 0 THEN h.last_end_at + p.smooth_ms END
  ));
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_end_session(p_so_far slotkeeper_ended, p_session text, p_instance text, p_ending text, p_ttl_ms double precision)
 RETURNS slotkeeper_ended
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := p_so_far.h;
  v_record slotkeeper_session;
  v_slot upstream_slot_pool;
  v_waiter slotkeeper_waiter;
  v_is_elsewhere boolean;
BEGIN
  SELECT * INTO v_record FROM slotkeeper_session WHERE host = h.host AND session = p_session;
  IF FOUND THEN
    SELECT * INTO v_slot FROM upstream_slot_pool p
    WHERE p.id = v_record.slot_id AND p.fence = v_record.fence AND NOT p.is_released;
    IF NOT FOUND THEN RETURN p_so_far; END IF;
  END IF;
  SELECT * INTO v_waiter FROM slotkeeper_waiter WHERE host = h.host AND session = p_session;
  v_is_elsewhere := CASE WHEN v_slot.id IS NULL THEN v_waiter.instance <> p_instance
    ELSE v_slot.is_shared OR v_slot.instance <> p_instance END;
  IF v_is_elsewhere AND p_ending <> 'canceled' THEN RETURN p_so_far; END IF;
  IF v_waiter.session IS NOT NULL THEN
    DELETE FROM slotkeeper_waiter WHERE host = h.host AND session = p_session;
    h := slotkeeper_move(h, v_waiter.bucket, NULL, -1, 0);
  END IF;
  INSERT INTO slotkeeper_session (host, session, ending, keep_until)
  VALUES (h.host, p_session, p_ending, h.touched_at + p_ttl_ms)
  ON CONFLICT (host, session) DO UPDATE SET slot_id = NULL, fence = NULL, ending = excluded.ending, keep_until = excluded.keep_until;
  IF v_slot.id IS NOT NULL THEN
    h := slotkeeper_end_lease(h, v_slot, h.touched_at);
    p_so_far.freed := p_so_far.freed || v_slot.ip_hash;
  END IF;
  p_so_far.h := h;
  RETURN p_so_far;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_find(p_host text)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host;
BEGIN
  SELECT * INTO h FROM slotkeeper_host WHERE host = p_host FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  h.touched_at := slotkeeper_now();
  RETURN slotkeeper_settle(h, h.touched_at);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_first_end(p_host text, p_bucket text)
 RETURNS double precision
 LANGUAGE plpgsql
AS $function$
BEGIN
  RETURN coalesce((
    SELECT min(ends_at) FROM upstream_slot_pool
    WHERE hostname_pattern = p_host AND status = 'locked' AND (p_bucket IS NULL OR ip_hash = p_bucket)
  ), 'Infinity');
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_forget_host(p_host text, p_fence bigint)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  DELETE FROM slotkeeper_account WHERE host = p_host;
  DELETE FROM upstream_slot_pool WHERE hostname_pattern = p_host;
  DELETE FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = p_host;
  DELETE FROM slotkeeper_host WHERE host = p_host;
  UPDATE slotkeeper_fence_floor SET fence = p_fence WHERE fence < p_fence;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_forget_sessions(p_host text, p_now double precision, p_most integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_gone integer;
BEGIN
  DELETE FROM slotkeeper_session d WHERE (d.host, d.session) IN (
    SELECT s.host, s.session FROM slotkeeper_session s
    WHERE s.host || '' = p_host AND s.keep_until <= p_now AND NOT EXISTS (
      SELECT FROM upstream_slot_pool p WHERE p.id = s.slot_id AND p.fence = s.fence AND p.ends_at > p_now
    ) ORDER BY s.keep_until LIMIT p_most
  );
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_free_rows(p_ids integer[])
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  UPDATE upstream_slot_pool SET status = 'available', ip_hash = NULL, locked_at = NULL, token = NULL, fence = NULL,
    session = NULL, instance = NULL, granted_by = NULL, granted_at = NULL, ends_at = NULL,
    is_released = false, is_probe = false, is_shared = false
  WHERE id = ANY (p_ids);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_free_slots(p_host text, p_count integer)
 RETURNS integer[]
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_ids integer[] := ARRAY(
    SELECT id FROM upstream_slot_pool WHERE hostname_pattern = p_host AND status <> 'locked' ORDER BY slot_index LIMIT p_count
  );
  v_missing integer := p_count - cardinality(v_ids);
BEGIN
  IF v_missing = 0 THEN RETURN v_ids; END IF;
  WITH added AS (
    INSERT INTO upstream_slot_pool (hostname_pattern, slot_index)
    SELECT p_host, g FROM generate_series(1, p_count + (
      SELECT count(*)::integer FROM upstream_slot_pool WHERE hostname_pattern = p_host
    )) g
    WHERE NOT EXISTS (SELECT FROM upstream_slot_pool WHERE hostname_pattern = p_host AND slot_index = g)
    ORDER BY g LIMIT v_missing
    RETURNING id
  )
  SELECT v_ids || array_agg(id) INTO v_ids FROM added;
  RETURN v_ids;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_give_back(h slotkeeper_host, p_slot upstream_slot_pool, p_hit_ago_ms double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_ends_at double precision := slotkeeper_end_of(h, p_hit_ago_ms);
BEGIN
  h.last_end_at := greatest(h.last_end_at, v_ends_at);
  PERFORM slotkeeper_cool_down(h, p_slot.ip_hash, v_ends_at);
  IF v_ends_at <= h.touched_at THEN RETURN slotkeeper_end_lease(h, p_slot, h.touched_at); END IF;
  UPDATE upstream_slot_pool SET is_released = true, ends_at = v_ends_at WHERE id = p_slot.id;
  h.next_end_at := least(h.next_end_at, v_ends_at);
  RETURN h;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_grant(r slotkeeper_round)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  v_standing integer := 0;
  v_free integer;
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    IF (r.entries[i]).status IS NULL THEN v_standing := v_standing + 1; END IF;
  END LOOP;
  v_free := least(v_standing, greatest(0, (h.policy).slots - (h.ledger).in_flight));
  IF v_free > 0 THEN
    r.slots := slotkeeper_free_slots(h.host, v_free);
    IF (h.policy).sequence = 'given' THEN
      r := slotkeeper_grant_given(r);
    ELSE
      r := slotkeeper_grant_ranked(r);
    END IF;
  END IF;
  FOR i IN 1 .. cardinality(r.entries) LOOP
    IF (r.entries[i]).status IS NULL THEN
      r.entries[i].status := 'WAIT';
      r.entries[i].blocked_by := 'host-limit';
    END IF;
  END LOOP;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_grant_direct(r slotkeeper_direct_round, p_bucket text, p_lease_ms double precision, p_is_probe boolean, p_by text)
 RETURNS slotkeeper_direct_round
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  a slotkeeper_direct_answer := r.a;
  v_now double precision := h.touched_at;
BEGIN
  a.status := 'ACQUIRED';
  a.slot_id := (slotkeeper_free_slots(h.host, 1))[1];
  IF p_by = 'id' THEN a.slot_id := slotkeeper_renumber(a.slot_id); ELSE a.token := slotkeeper_new_token(a.slot_id); END IF;
  h.fence := h.fence + 1;
  IF p_is_probe THEN h.probes := h.probes + 1; END IF;
  UPDATE upstream_slot_pool SET status = 'locked', ip_hash = p_bucket, locked_at = to_timestamp(v_now / 1000), token = a.token,
    fence = h.fence, session = NULL, instance = NULL, granted_by = p_by, granted_at = v_now, ends_at = v_now + p_lease_ms,
    is_released = false, is_probe = p_is_probe, is_shared = false
  WHERE id = a.slot_id;
  h := slotkeeper_move(h, p_bucket, NULL, 0, 1);
  h.next_end_at := least(h.next_end_at, v_now + p_lease_ms);
  RETURN ROW(h, a)::slotkeeper_direct_round;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_grant_given(r slotkeeper_round)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
AS $function$
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    EXIT WHEN ((r.h).policy).slots <= ((r.h).ledger).in_flight;
    IF (r.entries[i]).status IS NULL THEN r := slotkeeper_serve(r, i); END IF;
  END LOOP;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_grant_ranked(r slotkeeper_round)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_best integer;
  v_refused text;
BEGIN
  WHILE ((r.h).policy).slots > ((r.h).ledger).in_flight LOOP
    v_best := slotkeeper_best(r);
    EXIT WHEN v_best IS NULL;
    r := slotkeeper_serve(r, v_best);
    IF (r.entries[v_best]).status = 'IP_TOO_MANY' THEN
      -- What refuses the oldest of a bucket refuses the others.
      v_refused := (r.entries[v_best]).bucket;
      FOR i IN 1 .. cardinality(r.entries) LOOP
        IF (r.entries[i]).status IS NULL AND (r.entries[i]).bucket = v_refused THEN
          r := slotkeeper_serve(r, i);
        END IF;
      END LOOP;
    END IF;
  END LOOP;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_held(p_host text, p_token text)
 RETURNS upstream_slot_pool
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_slot upstream_slot_pool;
BEGIN
  SELECT * INTO v_slot FROM upstream_slot_pool
  WHERE id = slotkeeper_token_row(p_token) AND hostname_pattern = p_host AND token = p_token
    AND status = 'locked' AND NOT is_released;
  RETURN v_slot;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_host_key(p_hash text, p_name text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
DECLARE
  v_key text := coalesce(
    nullif(slotkeeper_checked('p_hostname_hash', p_hash, 128), ''),
    encode(sha256(convert_to(slotkeeper_lower(nullif(slotkeeper_checked('p_hostname', p_name, 255), '')), 'UTF8')), 'hex'));
BEGIN
  IF v_key IS NULL THEN
    RAISE EXCEPTION 'Expected a hostname or its hash, got neither' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN v_key;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_is_forgettable(h slotkeeper_host, p_idle_ms double precision)
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  p slotkeeper_policy := h.policy;
BEGIN
  RETURN (h.ledger).in_flight = 0 AND (h.ledger).waiting = 0 AND h.live_slots IS NULL AND h.live_slots_per_bucket IS NULL
    AND h.last_end_at + p.smooth_ms <= slotkeeper_now()
    AND NOT EXISTS (SELECT FROM upstream_ip_cooldown WHERE hostname_pattern = h.host)
    AND NOT EXISTS (SELECT FROM upstream_ip_queue_depth WHERE hostname_pattern = h.host)
    AND NOT EXISTS (SELECT FROM slotkeeper_session WHERE host = h.host)
    AND NOT EXISTS (
      SELECT FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = h.host AND (opened_at > slotkeeper_now() - 2 * p.breaker_open_ms
        OR window_start_at >= slotkeeper_now() - p.breaker_window_ms));
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_is_passed(l slotkeeper_ledger, a slotkeeper_account)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
AS $function$ SELECT a.used_ms <= l.progress * a.weight + 1e-3 $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_join(r slotkeeper_round, i integer)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  e slotkeeper_entry := r.entries[i];
  s slotkeeper_books;
  p slotkeeper_policy := h.policy;
  v_places integer := (r.accounts[e.account_no]).waiting;
  v_waiting integer := (h.ledger).waiting;
BEGIN
  IF h.direct_waiting > 0 THEN
    v_places := v_places + slotkeeper_direct_waiting(h, e.bucket);
    v_waiting := v_waiting + slotkeeper_direct_waiting(h);
  END IF;
  IF v_places >= p.waiters_per_bucket THEN
    e.status := 'QUEUE_FULL';
  ELSIF v_waiting >= p.waiters THEN
    r := slotkeeper_displace(r, i, v_places);
    h := r.h;
    e := r.entries[i];
  END IF;
  IF e.status IS NULL THEN
    s := ROW(h.ledger, r.accounts[e.account_no])::slotkeeper_books;
    s := slotkeeper_shift(s, 1, 0, e.weight, slotkeeper_bucket_limit(p, e.bucket));
    r.accounts[e.account_no] := s.account;
    h.ledger := s.ledger;
    r.h := h;
    e.is_pooled := true;
  END IF;
  r.entries[i] := e;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_level(l slotkeeper_ledger)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN l.contending_weight > 0
    THEN greatest(0, l.slots - (l.in_flight - l.contending_held)) / l.contending_weight ELSE 0 END
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_load(h slotkeeper_host, p_waiters jsonb)
 RETURNS slotkeeper_entry[]
 LANGUAGE plpgsql
AS $function$
BEGIN
  RETURN ARRAY(
    SELECT ROW(
      w.session, w.bucket, w.weight, w.arrived_at, w.ttl_ms, w.open_ms, w.is_grantable,
      a, coalesce(c.cool_until, extract(epoch FROM c.last_release_at) * 1000 + (h.policy).cooldown_ms),
      q.seen_at, q.instance, q.is_grantable,
      CASE WHEN s.keep_until > h.touched_at AND p.id IS NULL THEN coalesce(s.ending, 'released') END,
      p.id, p.token, p.fence, p.ends_at,
      NULL, q.session IS NOT NULL, false, false, NULL, NULL, NULL
    )::slotkeeper_entry
    FROM ROWS FROM (jsonb_to_recordset(p_waiters) AS (
      session text, bucket text, weight double precision, arrived_at double precision, ttl_ms double precision,
      open_ms double precision, is_grantable boolean
    )) WITH ORDINALITY AS w (session, bucket, weight, arrived_at, ttl_ms, open_ms, is_grantable, at)
    LEFT JOIN slotkeeper_session s ON s.host = h.host AND s.session = w.session
    LEFT JOIN upstream_slot_pool p ON p.id = s.slot_id AND p.fence = s.fence AND NOT p.is_released
    LEFT JOIN slotkeeper_waiter q ON q.host = h.host AND q.session = w.session
    LEFT JOIN slotkeeper_account a ON a.host = h.host AND a.bucket = w.bucket
    LEFT JOIN upstream_ip_cooldown c ON c.hostname_pattern = h.host AND c.ip_hash = w.bucket
    ORDER BY w.at
  );
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_load_accounts(r slotkeeper_round)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
AS $function$
DECLARE
  e slotkeeper_entry;
  v_no integer;
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    e := r.entries[i];
    v_no := array_position(r.buckets, e.bucket);
    IF v_no IS NULL THEN
      v_no := cardinality(r.buckets) + 1;
      r.buckets[v_no] := e.bucket;
      r.accounts[v_no] := CASE WHEN (e.account).host IS NOT NULL THEN e.account
        ELSE slotkeeper_new_account((r.h).host, e.bucket, e.weight, (r.h).touched_at) END;
    END IF;
    e.account := NULL;
    e.account_no := v_no;
    r.entries[i] := e;
  END LOOP;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_lower(p_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN octet_length(p_name) = char_length(p_name) THEN lower(p_name COLLATE "C") ELSE lower(p_name) END
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_move(h slotkeeper_host, p_bucket text, p_weight double precision, p_waiting integer, p_held integer)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
AS $function$
DECLARE
  a slotkeeper_account;
  s slotkeeper_books;
BEGIN
  SELECT * INTO a FROM slotkeeper_account WHERE host = h.host AND bucket = p_bucket;
  IF NOT FOUND THEN a := slotkeeper_new_account(h.host, p_bucket, coalesce(p_weight, 1), (h.ledger).as_of); END IF;
  s := ROW(h.ledger, a)::slotkeeper_books;
  s := slotkeeper_shift(s, p_waiting, p_held, coalesce(p_weight, a.weight), slotkeeper_bucket_limit(h.policy, p_bucket));
  a := s.account;
  IF a.in_flight < 0 OR a.waiting < 0 THEN
    RAISE EXCEPTION 'The account of a bucket of host % would fall below zero', h.host USING ERRCODE = 'data_corrupted';
  END IF;
  INSERT INTO slotkeeper_account VALUES (a.*)
  ON CONFLICT (host, bucket) DO UPDATE SET weight = a.weight, in_flight = a.in_flight, waiting = a.waiting,
    used_ms = a.used_ms, as_of = a.as_of, demand = a.demand, contends = a.contends;
  h.ledger := s.ledger;
  -- A named semaphore's capacity goes with its last user.
  IF (h.ledger).in_flight = 0 AND (h.ledger).waiting = 0 THEN h.capacity := NULL; END IF;
  RETURN h;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_new_account(p_host text, p_bucket text, p_weight double precision, p_at double precision)
 RETURNS slotkeeper_account
 LANGUAGE sql
 IMMUTABLE
AS $function$ SELECT ROW(p_host, p_bucket, p_weight, 0, 0, 0, p_at, 0, false)::slotkeeper_account $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_new_token(p_id integer)
 RETURNS text
 LANGUAGE sql
AS $function$
  SELECT p_id || '.' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_now()
 RETURNS double precision
 LANGUAGE sql
AS $function$ SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_open(p_host text, p_policy slotkeeper_policy, p_is_semaphore boolean DEFAULT false)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := slotkeeper_find(p_host);
  v_now double precision;
BEGIN
  WHILE h.host IS NULL LOOP
    v_now := slotkeeper_now();
    INSERT INTO slotkeeper_host (host, ledger, policy, fence, touched_at)
    SELECT p_host, ROW(p_policy.slots, 0, v_now, 0, 0, 0, 0, 0, 0)::slotkeeper_ledger, p_policy,
      greatest(floor(v_now * 1000)::bigint, f.fence), v_now
    FROM slotkeeper_fence_floor f
    ON CONFLICT DO NOTHING;
    h := slotkeeper_find(p_host);
  END LOOP;
  RETURN slotkeeper_adopt(h, p_policy, p_is_semaphore);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_open_direct(p_host text, p_policy slotkeeper_policy)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := slotkeeper_find(p_host);
BEGIN
  IF h.host IS NULL THEN RETURN slotkeeper_open(p_host, p_policy); END IF;
  IF (h.policy).sequence = 'direct' THEN RETURN slotkeeper_adopt(h, p_policy, false); END IF;
  RETURN h;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_or_unlimited(p_limit integer)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
AS $function$ SELECT CASE WHEN p_limit > 0 THEN p_limit ELSE 'Infinity'::double precision END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_pattern_key(p_pattern text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN p_pattern ~ '^[0-9a-f]{64}$' THEN p_pattern ELSE slotkeeper_host_key(NULL, p_pattern) END
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_ranks_before(a slotkeeper_rank, b slotkeeper_rank, p_now double precision)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
DECLARE
  v_a double precision;
  v_b double precision;
BEGIN
  IF a.held = b.held AND a.weight = b.weight THEN
    v_a := a.used_ms - a.held * p_now;
    v_b := b.used_ms - b.held * p_now;
  ELSE
    IF a.zone <> b.zone THEN RETURN a.zone < b.zone; END IF;
    IF a.zone <> 1 THEN
      v_a := (a.held + 1) / a.weight;
      v_b := (b.held + 1) / b.weight;
      IF abs(v_a - v_b) > 1e-9 THEN RETURN v_a < v_b; END IF;
    END IF;
    v_a := a.used_ms / a.weight;
    v_b := b.used_ms / b.weight;
  END IF;
  IF v_a <> v_b THEN RETURN v_a < v_b; END IF;
  RETURN a.head_at < b.head_at;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_ready()
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
BEGIN
  RETURN NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off';
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_reclaim_aged(h slotkeeper_host, p_timeout_ms double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_slot upstream_slot_pool;
BEGIN
  FOR v_slot IN
    SELECT * FROM upstream_slot_pool
    WHERE hostname_pattern = h.host AND status = 'locked' AND granted_by <> 'service'
      AND extract(epoch FROM locked_at) * 1000 + greatest(p_timeout_ms, ends_at - granted_at) <= h.touched_at
  LOOP
    h := slotkeeper_end_lease(h, v_slot, h.touched_at);
  END LOOP;
  RETURN h;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_refuse_table(p_name text, p_expected text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
BEGIN
  IF p_name IS DISTINCT FROM p_expected THEN
    RAISE EXCEPTION 'Expected the table to be %, got %: other tables are not served', p_expected, coalesce(p_name, 'NULL')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_register(p_batch jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
BEGIN
  RETURN slotkeeper_decide(p_batch, false);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_release(p_host text, p_policy jsonb, p_releases jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  v_hosts text[] := slotkeeper_token_hosts(p_releases);
  v_host text := coalesce(p_host, v_hosts[1]);
  v_is_news boolean := p_policy IS NOT NULL AND jsonb_path_exists(p_releases, '$[*].status');
  h slotkeeper_host;
  r slotkeeper_returns;
  one record;
BEGIN
  IF v_host IS NULL OR (v_is_news OR v_host = ANY (v_hosts)) IS NOT TRUE THEN
    RETURN slotkeeper_answer_elsewhere(v_hosts, NULL);
  END IF;
  h := CASE WHEN p_policy IS NULL THEN slotkeeper_find(v_host)
    ELSE slotkeeper_open(v_host, jsonb_populate_record(NULL::slotkeeper_policy, p_policy)) END;
  r := slotkeeper_returns_load(h, p_releases);
  FOR one IN SELECT * FROM ROWS FROM (jsonb_to_recordset(p_releases) AS (
    hit_ago_ms double precision, status integer, uncollected_by text
  )) WITH ORDINALITY AS t (hit_ago_ms, status, uncollected_by, at)
  LOOP
    CONTINUE WHEN v_hosts[one.at] <> v_host;
    r := slotkeeper_returns_one(r, one.at::integer, one.hit_ago_ms, one.status, one.uncollected_by);
  END LOOP;
  PERFORM slotkeeper_returns_write(r);
  RETURN slotkeeper_answer_elsewhere(v_hosts, r.replies);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_release_direct(h slotkeeper_host, p_slot upstream_slot_pool, p_cools boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_policy slotkeeper_policy := h.policy;
  p slotkeeper_policy := h.policy;
BEGIN
  IF NOT p_cools THEN
    p.cooldown_ms := 0;
    h.policy := p;
  ELSIF p_slot.ip_hash <> '' THEN
    INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at)
    VALUES (h.host, p_slot.ip_hash, to_timestamp(h.touched_at / 1000))
    ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET last_release_at = greatest(c.last_release_at, excluded.last_release_at);
  END IF;
  h := slotkeeper_give_back(h, p_slot, NULL);
  h.policy := v_policy;
  PERFORM slotkeeper_close(h);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_renew(p_token text)
 RETURNS double precision
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  h slotkeeper_host := slotkeeper_find(slotkeeper_token_host(p_token));
  v_slot upstream_slot_pool;
  v_ends_at double precision;
BEGIN
  IF h.host IS NULL THEN RETURN NULL; END IF;
  v_slot := slotkeeper_held(h.host, p_token);
  v_ends_at := greatest(v_slot.ends_at,
    least(h.touched_at + (h.policy).lease_ms, v_slot.granted_at + (h.policy).max_hold_ms));
  IF v_slot.id IS NOT NULL THEN UPDATE upstream_slot_pool SET ends_at = v_ends_at WHERE id = v_slot.id; END IF;
  PERFORM slotkeeper_close(h);
  RETURN CASE WHEN v_slot.id IS NOT NULL THEN v_ends_at - h.touched_at END;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_renumber(p_id integer)
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_id integer;
BEGIN
  LOOP
    v_id := 500000000 + floor(random() * 500000000)::integer;
    EXIT WHEN NOT EXISTS (SELECT FROM upstream_slot_pool WHERE id = v_id);
  END LOOP;
  UPDATE upstream_slot_pool SET id = v_id WHERE id = p_id;
  RETURN v_id;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_report(p_host text, p_policy jsonb, p_status integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  h slotkeeper_host := slotkeeper_open(p_host, jsonb_populate_record(NULL::slotkeeper_policy, p_policy));
BEGIN
  PERFORM slotkeeper_breaker_report(h.host, h.policy, p_status, false, h.touched_at);
  PERFORM slotkeeper_close(h);
  RETURN slotkeeper_breaker_view(slotkeeper_breaker_read(h.host, h.touched_at, (h.policy).breaker_open_ms), h.touched_at);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_required(p_argument text, p_value integer, p_least integer)
 RETURNS double precision
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
BEGIN
  IF p_value IS NULL OR p_value < p_least THEN
    RAISE EXCEPTION 'Expected % to be at least %, got %', p_argument, p_least, coalesce(p_value::text, 'NULL')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN p_value;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_returns_free(r slotkeeper_returns, p_slot upstream_slot_pool)
 RETURNS slotkeeper_returns
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  v_no integer := array_position(r.buckets, p_slot.ip_hash);
  s slotkeeper_books := ROW(h.ledger, r.accounts[v_no])::slotkeeper_books;
BEGIN
  s := slotkeeper_shift(s, 0, -1, 0, slotkeeper_bucket_limit(h.policy, p_slot.ip_hash));
  r.accounts[v_no] := s.account;
  h.ledger := s.ledger;
  IF p_slot.is_probe THEN h.probes := h.probes - 1; END IF;
  IF (h.ledger).in_flight = 0 AND (h.ledger).waiting = 0 THEN h.capacity := NULL; END IF;
  r.h := h;
  r.freed := r.freed || p_slot.id;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_returns_load(h slotkeeper_host, p_releases jsonb)
 RETURNS slotkeeper_returns
 LANGUAGE plpgsql
AS $function$
DECLARE
  r slotkeeper_returns;
BEGIN
  r.h := h;
  r.slots := ARRAY(
    SELECT p FROM ROWS FROM (jsonb_to_recordset(p_releases) AS (token text)) WITH ORDINALITY AS t (token, at)
    LEFT JOIN upstream_slot_pool p ON p.id = slotkeeper_token_row(t.token) AND p.token = t.token
      AND p.hostname_pattern = h.host AND p.status = 'locked' AND NOT p.is_released
    ORDER BY t.at
  );
  r.accounts := ARRAY(
    SELECT a FROM slotkeeper_account a WHERE a.host = h.host
      AND a.bucket = ANY (ARRAY(SELECT p.ip_hash FROM unnest(r.slots) p WHERE p.id IS NOT NULL))
  );
  r.buckets := ARRAY(SELECT a.bucket FROM unnest(r.accounts) a);
  r.freed := '{}';
  r.replies := '{}';
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_returns_one(r slotkeeper_returns, i integer, p_hit_ago_ms double precision, p_status integer, p_uncollected_by text)
 RETURNS slotkeeper_returns
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  v_slot upstream_slot_pool := r.slots[i];
  v_ends_at double precision := h.touched_at;
BEGIN
  FOR n IN 1 .. i - 1 LOOP
    IF (r.slots[n]).id = v_slot.id THEN v_slot := NULL; END IF;
  END LOOP;
  -- News of the upstream, even when the slot it came with is lost.
  IF p_status IS NOT NULL THEN
    PERFORM slotkeeper_breaker_report(h.host, h.policy, p_status, coalesce(v_slot.is_probe, false), h.touched_at);
  END IF;
  -- Uncollected: as if it had never been granted, unless somebody else was told of it.
  IF v_slot.id IS NULL OR (p_uncollected_by IS NOT NULL AND (v_slot.is_shared OR v_slot.instance <> p_uncollected_by)) THEN
    r.slots[i] := NULL;
    r.replies[i] := '{"isReleased": false}';
    RETURN r;
  END IF;
  IF p_uncollected_by IS NULL THEN
    v_ends_at := slotkeeper_end_of(h, p_hit_ago_ms);
    h.last_end_at := greatest(h.last_end_at, v_ends_at);
    PERFORM slotkeeper_cool_down(h, v_slot.ip_hash, v_ends_at);
  ELSE
    DELETE FROM slotkeeper_session WHERE host = h.host AND session = v_slot.session;
  END IF;
  IF v_ends_at > h.touched_at THEN
    UPDATE upstream_slot_pool SET is_released = true, ends_at = v_ends_at WHERE id = v_slot.id;
    h.next_end_at := least(h.next_end_at, v_ends_at);
    r.h := h;
  ELSE
    r.h := h;
    r := slotkeeper_returns_free(r, v_slot);
  END IF;
  r.replies[i] := jsonb_build_object(
    'isReleased', true, 'host', h.host, 'bucket', v_slot.ip_hash, 'endsInMs', v_ends_at - h.touched_at);
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_returns_write(r slotkeeper_returns)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
BEGIN
  IF cardinality(r.freed) > 0 THEN
    PERFORM slotkeeper_free_rows(r.freed);
    UPDATE slotkeeper_account a SET in_flight = n.in_flight, used_ms = n.used_ms, as_of = n.as_of, demand = n.demand,
      contends = n.contends
    FROM unnest(r.accounts) n WHERE a.host = n.host AND a.bucket = n.bucket;
  END IF;
  PERFORM slotkeeper_close(r.h);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_revoke(p_fence bigint)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  v_hosts text[] := ARRAY(SELECT hostname_pattern FROM upstream_slot_pool WHERE fence = p_fence AND NOT is_released LIMIT 2);
  h slotkeeper_host;
  v_slot upstream_slot_pool;
BEGIN
  IF cardinality(v_hosts) <> 1 THEN RETURN NULL; END IF;
  h := slotkeeper_find(v_hosts[1]);
  SELECT * INTO v_slot FROM upstream_slot_pool
  WHERE hostname_pattern = h.host AND fence = p_fence AND status = 'locked' AND NOT is_released;
  IF FOUND THEN h := slotkeeper_end_lease(h, v_slot, h.touched_at); END IF;
  PERFORM slotkeeper_close(h);
  RETURN CASE WHEN v_slot.id IS NOT NULL THEN jsonb_build_object('host', h.host, 'bucket', v_slot.ip_hash) END;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_serve(r slotkeeper_round, i integer)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host;
  e slotkeeper_entry := slotkeeper_answer(r, r.entries[i]);
  s slotkeeper_books;
  v_limit double precision;
BEGIN
  IF e.status = 'ACQUIRED' THEN
    h := r.h;
    v_limit := slotkeeper_bucket_limit(h.policy, e.bucket);
    s := ROW(h.ledger, r.accounts[e.account_no])::slotkeeper_books;
    s := slotkeeper_shift(s, 0, 1, e.weight, v_limit);
    s := slotkeeper_shift(s, -1, 0, e.weight, v_limit);
    r.accounts[e.account_no] := s.account;
    h.ledger := s.ledger;
    h.fence := h.fence + 1;
    IF e.is_probe THEN h.probes := h.probes + 1; END IF;
    e.is_granted := true;
    r.granted := r.granted + 1;
    e.slot_id := r.slots[r.granted];
    e.token := slotkeeper_new_token(e.slot_id);
    e.fence := h.fence;
    e.ends_at := h.touched_at + least((h.policy).lease_ms, (h.policy).max_hold_ms);
    r.h := h;
  END IF;
  r.entries[i] := e;
  RETURN r;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_set_breaker(p_host text, p_policy jsonb, p_is_open boolean)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  h slotkeeper_host := slotkeeper_open(p_host, jsonb_populate_record(NULL::slotkeeper_policy, p_policy));
BEGIN
  PERFORM slotkeeper_breaker_write(h.host,
    CASE WHEN p_is_open THEN slotkeeper_breaker_opened(0, h.touched_at) ELSE slotkeeper_breaker_closed() END);
  PERFORM slotkeeper_close(h);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_set_limits(p_host text, p_policy jsonb, p_slots double precision, p_slots_per_bucket double precision)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  v_policy slotkeeper_policy := jsonb_populate_record(NULL::slotkeeper_policy, p_policy);
  h slotkeeper_host := slotkeeper_open(p_host, v_policy);
BEGIN
  h.live_slots := p_slots;
  h.live_slots_per_bucket := p_slots_per_bucket;
  PERFORM slotkeeper_close(slotkeeper_adopt(h, v_policy, false));
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_settle(h slotkeeper_host, p_now double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
AS $function$
DECLARE
  r_slot upstream_slot_pool;
  v_bucket text;
BEGIN
  IF h.next_end_at <= p_now THEN
    FOR r_slot IN
      SELECT * FROM upstream_slot_pool
      WHERE hostname_pattern = h.host AND status = 'locked' AND ends_at <= p_now ORDER BY ends_at, id
    LOOP
      h := slotkeeper_end_lease(h, r_slot, r_slot.ends_at);
    END LOOP;
    h.next_end_at := slotkeeper_first_end(h.host, NULL);
  END IF;
  h.ledger := slotkeeper_advance(h.ledger, p_now);
  IF h.next_silent_at <= p_now THEN
    FOR v_bucket IN
      DELETE FROM slotkeeper_waiter WHERE host = h.host AND seen_at < p_now - slotkeeper_silence_ms() RETURNING bucket
    LOOP
      h := slotkeeper_move(h, v_bucket, NULL, -1, 0);
    END LOOP;
    SELECT coalesce(min(seen_at) + slotkeeper_silence_ms(), 'Infinity') INTO h.next_silent_at
    FROM slotkeeper_waiter WHERE host = h.host;
  END IF;
  RETURN h;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_shift(s slotkeeper_books, p_waiting integer, p_held integer, p_weight double precision, p_limit double precision)
 RETURNS slotkeeper_books
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
DECLARE
  l slotkeeper_ledger := s.ledger;
  a slotkeeper_account := s.account;
  v_demand double precision;
  v_contends boolean;
BEGIN
  IF p_waiting > 0 OR p_held > 0 THEN
    IF a.in_flight = 0 AND a.waiting = 0 THEN
      -- Back from idle: joins at the meter, never below what it had and is still ahead by.
      IF slotkeeper_is_passed(l, a) THEN a.used_ms := 0; END IF;
      a.weight := p_weight;
      a.used_ms := greatest(a.used_ms, l.progress * p_weight);
      a.as_of := l.as_of;
      l.active_weight := l.active_weight + p_weight;
    ELSIF a.weight <> p_weight THEN
      -- A changed weight keeps the place per weight.
      a.used_ms := (a.used_ms + a.in_flight * (l.as_of - a.as_of)) * (p_weight / a.weight);
      a.as_of := l.as_of;
      l.active_weight := l.active_weight + (p_weight - a.weight);
      IF a.contends THEN l.contending_weight := l.contending_weight + (p_weight - a.weight); END IF;
      a.weight := p_weight;
    END IF;
  END IF;

  IF p_held <> 0 THEN
    a.used_ms := a.used_ms + a.in_flight * (l.as_of - a.as_of);
    a.as_of := l.as_of;
    IF a.contends THEN l.contending_held := l.contending_held + p_held; END IF;
    a.in_flight := a.in_flight + p_held;
    l.in_flight := l.in_flight + p_held;
  END IF;
  a.waiting := a.waiting + p_waiting;
  l.waiting := l.waiting + p_waiting;

  v_demand := least(p_limit, a.waiting + a.in_flight);
  l.demand := l.demand + (v_demand - a.demand);
  a.demand := v_demand;
  v_contends := a.waiting > 0 AND a.in_flight < p_limit;
  IF v_contends <> a.contends THEN
    a.contends := v_contends;
    IF v_contends THEN
      l.contending_weight := l.contending_weight + a.weight;
      l.contending_held := l.contending_held + a.in_flight;
    ELSE
      l.contending_weight := l.contending_weight - a.weight;
      l.contending_held := l.contending_held - a.in_flight;
    END IF;
    -- Sums of fractions drift; with nobody waiting they are known exactly.
    IF l.waiting = 0 THEN l.contending_weight := 0; END IF;
  END IF;

  IF a.in_flight = 0 AND a.waiting = 0 THEN
    l.active_weight := CASE WHEN l.in_flight + l.waiting = 0 THEN 0 ELSE l.active_weight - a.weight END;
  END IF;
  RETURN ROW(l, a)::slotkeeper_books;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_silence_ms()
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
AS $function$ SELECT 5000::double precision $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_snapshot()
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  RETURN jsonb_build_object(
    'sessions', (SELECT count(*) FROM slotkeeper_session),
    'hosts', coalesce((SELECT jsonb_agg(slotkeeper_snapshot_host(h, v_now) ORDER BY h.host) FROM slotkeeper_host h), '[]')
  );
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_snapshot_host(h slotkeeper_host, p_now double precision)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
AS $function$
DECLARE
  l slotkeeper_ledger := slotkeeper_advance(h.ledger, p_now);
BEGIN
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'host', h.host,
    'slots', (h.policy).slots,
    'inFlight', (
      SELECT count(*) FROM upstream_slot_pool WHERE hostname_pattern = h.host AND status = 'locked' AND ends_at > p_now),
    'waiting', l.waiting,
    'progress', l.progress,
    'breaker', slotkeeper_breaker_view(slotkeeper_breaker_read(h.host, p_now, (h.policy).breaker_open_ms), p_now),
    'live', CASE WHEN coalesce(h.live_slots, h.live_slots_per_bucket) IS NOT NULL THEN
      jsonb_build_object('slots', h.live_slots, 'slotsPerBucket', h.live_slots_per_bucket) END,
    'buckets', coalesce((
      SELECT jsonb_agg(jsonb_build_object('bucket', a.bucket, 'inFlight', a.in_flight, 'waiting', a.waiting,
        'weight', a.weight, 'usedMs', slotkeeper_used(l, a, a.weight, p_now)) ORDER BY a.bucket)
      FROM slotkeeper_account a
      WHERE a.host = h.host AND (a.in_flight + a.waiting > 0 OR NOT slotkeeper_is_passed(l, a))), '[]'),
    'leases', coalesce((
      SELECT jsonb_agg(jsonb_build_object('slot', p.fence, 'session', coalesce(p.session, ''),
        'bucket', coalesce(p.ip_hash, ''), 'endsInMs', p.ends_at - p_now, 'isReleased', p.is_released,
        'isProbe', p.is_probe) ORDER BY p.slot_index)
      FROM upstream_slot_pool p
      WHERE p.hostname_pattern = h.host AND p.status = 'locked' AND p.ends_at > p_now), '[]')
  ));
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_sweep(p_after text, p_count integer, p_idle_ms double precision, p_reset_smoothing boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  h slotkeeper_host;
  v_last text;
  v_before slotkeeper_ledger;
  v_slots integer := 0;
  v_waiters integer := 0;
  v_sessions integer := 0;
BEGIN
  FOR h IN SELECT * FROM slotkeeper_host WHERE host > p_after ORDER BY host LIMIT p_count LOOP
    v_last := h.host;
    SELECT * INTO h FROM slotkeeper_host WHERE host = v_last FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    v_before := h.ledger;
    h := slotkeeper_settle(h, slotkeeper_now());
    v_slots := v_slots + v_before.in_flight - (h.ledger).in_flight;
    v_waiters := v_waiters + v_before.waiting - (h.ledger).waiting;
    v_sessions := v_sessions + slotkeeper_forget_sessions(h.host, (h.ledger).as_of, 10000);
    IF p_reset_smoothing THEN h.last_end_at := '-Infinity'; END IF;
    IF h.touched_at + p_idle_ms <= (h.ledger).as_of AND slotkeeper_is_forgettable(h, p_idle_ms) THEN
      PERFORM slotkeeper_forget_host(h.host, h.fence);
      CONTINUE;
    END IF;
    DELETE FROM slotkeeper_account a WHERE a.host = h.host AND a.in_flight = 0 AND a.waiting = 0
      AND slotkeeper_is_passed(h.ledger, a);
    DELETE FROM upstream_slot_pool WHERE hostname_pattern = h.host AND status <> 'locked' AND slot_index > (h.policy).slots;
    PERFORM slotkeeper_close(h);
  END LOOP;
  RETURN jsonb_build_object('slots', v_slots, 'waiters', v_waiters, 'sessions', v_sessions, 'last', v_last);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_sweep_cooldowns()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_cooldown WHERE cool_until <= slotkeeper_now();
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_sweep_depth(p_ttl_ms double precision)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_queue_depth
  WHERE expires_at <= slotkeeper_now() AND extract(epoch FROM updated_at) * 1000 <= slotkeeper_now() - p_ttl_ms;
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_token_host(p_token text)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
BEGIN
  RETURN (SELECT hostname_pattern FROM upstream_slot_pool WHERE id = slotkeeper_token_row(p_token) AND token = p_token);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_token_hosts(p_releases jsonb)
 RETURNS text[]
 LANGUAGE plpgsql
AS $function$
BEGIN
  RETURN ARRAY(
    SELECT p.hostname_pattern
    FROM ROWS FROM (jsonb_to_recordset(p_releases) AS (token text)) WITH ORDINALITY AS t (token, at)
    LEFT JOIN upstream_slot_pool p ON p.id = slotkeeper_token_row(t.token) AND p.token = t.token
    ORDER BY t.at
  );
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_token_keys(p_new_secret text)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
BEGIN
  INSERT INTO slotkeeper_token_key VALUES (1, p_new_secret) ON CONFLICT DO NOTHING;
  RETURN (SELECT jsonb_agg(secret) FROM slotkeeper_token_key);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_token_row(p_token text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN p_token ~ '^[1-9][0-9]{0,8}\.[0-9a-f]{64}$' THEN split_part(p_token, '.', 1)::integer END
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_try_acquire(p_batch jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
BEGIN
  RETURN slotkeeper_decide(p_batch, true);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_try_direct(p_host text, p_bucket text, p_policy slotkeeper_policy, p_cooldown_ms double precision, p_by text)
 RETURNS slotkeeper_direct_answer
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := slotkeeper_open_direct(p_host, p_policy);
  a slotkeeper_direct_answer;
  r slotkeeper_direct_round;
  v_slots double precision := coalesce(h.capacity, h.live_slots, p_policy.slots);
  v_per_bucket double precision := coalesce(h.live_slots_per_bucket, p_policy.slots_per_bucket);
  -- func_try_acquire_slot brings no window of its own.
  v_open_ms double precision := CASE p_by WHEN 'id' THEN (h.policy).breaker_open_ms ELSE p_policy.breaker_open_ms END;
  v_now double precision := h.touched_at;
  v_held integer;
  v_opened_at double precision;
  v_is_probe boolean;
BEGIN
  IF p_bucket = '' OR h.capacity IS NOT NULL THEN v_per_bucket := 'Infinity'; END IF;
  SELECT in_flight INTO v_held FROM slotkeeper_account WHERE host = h.host AND bucket = p_bucket;
  IF (h.ledger).in_flight >= v_slots OR v_held >= v_per_bucket THEN
    h := slotkeeper_reclaim_aged(h, p_policy.lease_ms);
    SELECT in_flight INTO v_held FROM slotkeeper_account WHERE host = h.host AND bucket = p_bucket;
  END IF;
  a.depths := slotkeeper_depths(h, p_bucket);
  SELECT opened_at, code INTO v_opened_at, a.code
  FROM slotkeeper_breaker_read(h.host, v_now, greatest(v_open_ms, (h.policy).breaker_open_ms));
  v_is_probe := v_opened_at IS NOT NULL;
  IF v_now - v_opened_at < v_open_ms THEN
    a.status := 'THROTTLED';
    a.retry_in_ms := v_open_ms - (v_now - v_opened_at);
  ELSIF v_held >= v_per_bucket OR slotkeeper_cools_until(h.host, p_bucket, p_cooldown_ms) > v_now THEN
    a.status := 'IP_TOO_MANY';
  ELSIF (h.ledger).in_flight >= v_slots OR (v_is_probe AND h.probes >= (h.policy).breaker_probes) THEN
    a.status := 'QUEUE_FULL';
  ELSE
    r := slotkeeper_grant_direct(ROW(h, a)::slotkeeper_direct_round, p_bucket, p_policy.lease_ms, v_is_probe, p_by);
    h := r.h;
    a := r.a;
  END IF;
  PERFORM slotkeeper_close(h);
  RETURN a;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_used(l slotkeeper_ledger, a slotkeeper_account, p_weight double precision, p_now double precision)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN a.in_flight = 0 AND a.waiting = 0 AND slotkeeper_is_passed(l, a) THEN l.progress * p_weight
    ELSE a.used_ms + a.in_flight * (p_now - a.as_of) END
$function$
;

CREATE OR REPLACE FUNCTION slotkeeper_verdicts(r slotkeeper_round)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
BEGIN
  RETURN (
    SELECT coalesce(jsonb_agg(CASE e.status
      WHEN 'ACQUIRED' THEN jsonb_build_object('status', e.status, 'slot', jsonb_build_object(
        'slotToken', e.token, 'fence', e.fence, 'leaseMs', e.ends_at - (r.h).touched_at))
      WHEN 'WAIT' THEN jsonb_build_object('status', e.status, 'blockedBy', e.blocked_by)
      WHEN 'IP_TOO_MANY' THEN
        jsonb_build_object('status', e.status, 'blockedBy', e.blocked_by, 'retryInMs', e.retry_in_ms)
      WHEN 'THROTTLED' THEN
        jsonb_build_object('status', e.status, 'code', (r.breaker).code, 'retryInMs', e.retry_in_ms)
      WHEN 'ENDED' THEN jsonb_build_object('status', e.status, 'end', e.ending)
      ELSE jsonb_build_object('status', e.status)
    END ORDER BY at), '[]')
    FROM unnest(r.entries) WITH ORDINALITY AS e (session, bucket, weight, arrived_at, ttl_ms, open_ms, is_grantable,
      account, cool_until, seen_at, owner, was_grantable, ending, slot_id, token, fence, ends_at, account_no, is_pooled,
      is_granted, is_probe, status, blocked_by, retry_in_ms, at)
  );
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_withdraw(p_batch jsonb)
 RETURNS jsonb
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
DECLARE
  v_ended slotkeeper_ended;
  r record;
BEGIN
  v_ended.h := slotkeeper_open(p_batch ->> 'host', jsonb_populate_record(NULL::slotkeeper_policy, p_batch -> 'policy'));
  v_ended.freed := '{}';
  FOR r IN SELECT * FROM jsonb_to_recordset(p_batch -> 'sessions') AS t (session text, ending text, ttl_ms double precision)
  LOOP
    v_ended := slotkeeper_end_session(v_ended, r.session, p_batch ->> 'instance', r.ending, r.ttl_ms);
  END LOOP;
  PERFORM slotkeeper_close(v_ended.h);
  RETURN to_jsonb(v_ended.freed);
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_write_grants(r slotkeeper_round)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  v_now double precision := (r.h).touched_at;
  v_host text := (r.h).host;
  e slotkeeper_entry;
BEGIN
  FOREACH e IN ARRAY r.entries LOOP
    IF e.status IN ('ACQUIRED', 'ENDED') AND NOT e.is_granted THEN
      UPDATE slotkeeper_session SET keep_until = v_now + e.ttl_ms
      WHERE host = v_host AND session = e.session AND keep_until < v_now + e.ttl_ms;
      UPDATE upstream_slot_pool SET is_shared = true WHERE id = e.slot_id AND NOT is_shared;
    END IF;
  END LOOP;
  IF r.granted = 0 THEN RETURN; END IF;
  UPDATE upstream_slot_pool p SET status = 'locked', ip_hash = g.bucket, locked_at = to_timestamp(v_now / 1000),
    token = g.token, fence = g.fence, session = g.session, instance = r.instance, granted_by = 'service',
    granted_at = v_now, ends_at = g.ends_at, is_released = false, is_probe = g.is_probe, is_shared = false
  FROM unnest(r.entries) g WHERE g.is_granted AND p.id = g.slot_id;
  INSERT INTO slotkeeper_session (host, session, slot_id, fence, keep_until)
  SELECT v_host, g.session, g.slot_id, g.fence, v_now + g.ttl_ms FROM unnest(r.entries) g WHERE g.is_granted
  -- Only a record that is past its deadline can be in the way. The same session twice in one batch is an error here.
  ON CONFLICT (host, session) DO UPDATE SET slot_id = excluded.slot_id, fence = excluded.fence, ending = NULL,
    keep_until = excluded.keep_until;
  -- Now and then, what is past its deadline goes; the sweep gets the rest.
  IF (r.h).fence % 16 < r.granted THEN PERFORM slotkeeper_forget_sessions(v_host, v_now, 64); END IF;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_write_joins(r slotkeeper_round, p_upto integer)
 RETURNS slotkeeper_entry[]
 LANGUAGE plpgsql
AS $function$
DECLARE
  e slotkeeper_entry;
  h slotkeeper_host := r.h;
BEGIN
  FOR i IN 1 .. p_upto LOOP
    e := r.entries[i];
    CONTINUE WHEN NOT e.is_pooled OR e.seen_at IS NOT NULL;
    INSERT INTO slotkeeper_waiter
    VALUES (h.host, e.session, e.bucket, e.arrived_at, r.instance, h.touched_at, e.is_grantable);
    e.seen_at := h.touched_at;
    r.entries[i] := e;
  END LOOP;
  RETURN r.entries;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_write_waiters(r slotkeeper_round)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
DECLARE
  h slotkeeper_host := r.h;
  v_now double precision := h.touched_at;
  e slotkeeper_entry;
  v_new integer := 0;
  v_left integer := 0;
  v_stale integer := 0;
BEGIN
  FOREACH e IN ARRAY r.entries LOOP
    IF e.is_granted THEN
      IF e.seen_at IS NOT NULL THEN v_left := v_left + 1; END IF;
    ELSIF e.is_pooled AND e.status IN ('WAIT', 'IP_TOO_MANY') THEN
      IF e.seen_at IS NULL THEN
        v_new := v_new + 1;
      ELSIF e.seen_at < v_now - 500 OR e.owner <> r.instance OR e.was_grantable <> e.is_grantable THEN
        v_stale := v_stale + 1;
      END IF;
    END IF;
  END LOOP;
  IF v_left > 0 THEN
    DELETE FROM slotkeeper_waiter w USING unnest(r.entries) g
    WHERE g.is_granted AND g.seen_at IS NOT NULL AND w.host = h.host AND w.session = g.session;
  END IF;
  IF v_new > 0 THEN
    INSERT INTO slotkeeper_waiter
    SELECT h.host, n.session, n.bucket, n.arrived_at, r.instance, v_now, n.is_grantable
    FROM unnest(r.entries) n WHERE n.is_pooled AND NOT n.is_granted AND n.seen_at IS NULL;
  END IF;
  IF v_stale > 0 THEN
    UPDATE slotkeeper_waiter w SET seen_at = v_now, instance = r.instance, is_grantable = s.is_grantable
    FROM unnest(r.entries) s
    WHERE s.is_pooled AND s.status IN ('WAIT', 'IP_TOO_MANY') AND s.seen_at IS NOT NULL
      AND w.host = h.host AND w.session = s.session;
  END IF;
END $function$
;

CREATE OR REPLACE FUNCTION slotkeeper_zone(p_held integer, p_weight double precision, p_level double precision)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
AS $function$
  SELECT CASE WHEN p_held + 1 <= p_level * p_weight + 1e-9 THEN 0 WHEN p_held < p_level * p_weight - 1e-9 THEN 1 ELSE 2 END
$function$
;
