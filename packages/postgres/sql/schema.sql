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
  capacity double precision,
  is_grantable boolean,
  account slotkeeper_account,
  cool_until double precision,
  seen_at double precision,
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

CREATE TYPE slotkeeper_lines AS (
  line integer[],
  next integer[],
  last integer[],
  held integer[],
  weight double precision[],
  used_ms double precision[],
  head_at double precision[]
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
  given slotkeeper_policy,
  is_semaphore boolean,
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
  reclaimed integer NOT NULL DEFAULT 0,
  touched_at double precision NOT NULL,
  CONSTRAINT slotkeeper_host_pkey PRIMARY KEY (host)
) WITH (fillfactor=25, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE slotkeeper_instance (
  about jsonb NOT NULL,
  ends_at double precision NOT NULL,
  instance text NOT NULL,
  seen_at double precision NOT NULL,
  CONSTRAINT slotkeeper_instance_pkey PRIMARY KEY (instance)
) WITH (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

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
  is_direct boolean NOT NULL DEFAULT false,
  last_release_at timestamp with time zone NOT NULL DEFAULT now(),
  CONSTRAINT upstream_ip_cooldown_pkey PRIMARY KEY (hostname_pattern, ip_hash)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE upstream_ip_queue_depth (
  expires_at double precision NOT NULL DEFAULT 0,
  expiries double precision[] NOT NULL DEFAULT '{}'::double precision[],
  hostname text,
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
  CONSTRAINT upstream_slot_pool_books CHECK (((status = 'locked'::text) = (ends_at IS NOT NULL))),
  CONSTRAINT upstream_slot_pool_pkey PRIMARY KEY (id)
) WITH (fillfactor=40, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE INDEX slotkeeper_session_keep ON slotkeeper_session USING btree (((host || ''::text)), keep_until);

CREATE INDEX upstream_ip_queue_depth_name ON upstream_ip_queue_depth USING btree (hostname, ip_hash) WHERE (hostname IS NOT NULL);

CREATE UNIQUE INDEX upstream_slot_pool_slot ON upstream_slot_pool USING btree (hostname_pattern, slot_index);

COMMENT ON TABLE slotkeeper_account IS 'Account in packages/queue/src/order/state.ts. waiting counts slotkeeper_waiter only. An idle row that the meter has passed counts as none.';

COMMENT ON COLUMN slotkeeper_host.capacity IS 'What the live users of a named semaphore fixed.';

COMMENT ON COLUMN slotkeeper_host.direct_waiting IS 'Above 0: upstream_ip_queue_depth may have live rows of this host, and is asked. 0: it has none.';

COMMENT ON COLUMN slotkeeper_host.next_end_at IS 'No lease ends before it. A lower bound: settling looks only when it has come.';

COMMENT ON COLUMN slotkeeper_host.next_silent_at IS 'No waiter falls silent before it. A lower bound.';

COMMENT ON COLUMN slotkeeper_host.policy IS 'In force: what instances brought last, with capacity and live limits put in.';

COMMENT ON COLUMN slotkeeper_host.probes IS 'Leases that are half-open probes.';

COMMENT ON COLUMN slotkeeper_host.reclaimed IS 'Leases that ran out unreleased, and that no answer has told of yet.';

COMMENT ON COLUMN slotkeeper_host.touched_at IS 'The moment of the last call, by the clock as read under its lock.';

COMMENT ON TABLE slotkeeper_session IS 'Its lease, which is over unless the slot still has this fence; or its end. Asked for by session: granted once in its life.';

COMMENT ON COLUMN upstream_ip_queue_depth.expiries IS 'When each counted waiter stops counting, ascending. waiting_count is their number when last written, expires_at the last.';

COMMENT ON COLUMN upstream_ip_queue_depth.hostname IS 'In lower case, where the host''s key is not its SHA-256.';

CREATE OR REPLACE FUNCTION download_check_throttle_protection(p_hostname_hash text, p_hostname text, p_throttle_time_window integer DEFAULT 60, p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION'::text)
 RETURNS TABLE(is_protected boolean, error_code integer, retry_after integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET jit TO 'off'
-- text: md5 bae8ba7900fa7455a56b4c1307de8920

CREATE OR REPLACE FUNCTION download_register_fq_waiter(p_hostname_hash text, p_hostname text, p_ip_bucket text, p_max_waiters_per_ip integer DEFAULT 0, p_zombie_timeout_seconds integer DEFAULT 20, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text, p_max_waiters_per_host integer DEFAULT 0)
 RETURNS TABLE(status text, queue_depth integer, ip_queue_depth integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET jit TO 'off'
-- text: md5 e7b0ffa1a11a06bafe153f22aef5bfa9

CREATE OR REPLACE FUNCTION download_release_fq_waiter(p_hostname text, p_ip_bucket text, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text)
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
 SET jit TO 'off'
-- text: md5 f75f451d16df306a6b52cb24da4fc13f

CREATE OR REPLACE FUNCTION download_release_slot(p_hostname_hash text, p_ip_bucket text, p_slot_token text, p_now_ms bigint)
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
 SET jit TO 'off'
-- text: md5 e4923e53527443b0d92d6d5b41cfdec4

CREATE OR REPLACE FUNCTION download_try_acquire_slot(p_hostname_hash text, p_hostname text, p_ip_bucket text, p_now_ms bigint, p_max_slot_per_host integer, p_max_slot_per_ip integer, p_max_waiters_per_ip integer DEFAULT 0, p_zombie_timeout integer DEFAULT 30, p_cooldown_seconds integer DEFAULT 0, p_throttle_time_window integer DEFAULT 60, p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION'::text, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text)
 RETURNS TABLE(status text, slot_token text, queue_depth integer, ip_queue_depth integer, throttle_code integer, throttle_retry_after integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET jit TO 'off'
-- text: md5 253148a164477433f018107c5b710b9c

CREATE OR REPLACE FUNCTION download_upsert_throttle_protection(p_hostname_hash text, p_hostname text, p_now integer, p_is_error boolean, p_status_code integer, p_throttle_time_window integer, p_observe_window_seconds integer, p_error_ratio_percent integer, p_consecutive_threshold integer, p_min_sample_count integer, p_fast_error_ratio_percent integer DEFAULT NULL::integer, p_fast_min_sample_count integer DEFAULT NULL::integer, p_table_name text DEFAULT 'THROTTLE_PROTECTION'::text)
 RETURNS TABLE("HOSTNAME_HASH" text, "HOSTNAME" text, "ERROR_TIMESTAMP" integer, "IS_PROTECTED" integer, "LAST_ERROR_CODE" integer, "OBS_WINDOW_START" integer, "OBS_ERROR_COUNT" integer, "OBS_SUCCESS_COUNT" integer, "CONSECUTIVE_ERROR_COUNT" integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET jit TO 'off'
-- text: md5 bed6fc61180d4ba4df8dd119adfef44d

CREATE OR REPLACE FUNCTION func_cleanup_ip_cooldown(p_ttl_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET jit TO 'off'
-- text: md5 44b88071911bf81336f014b4241cfd45

CREATE OR REPLACE FUNCTION func_cleanup_queue_depth(p_ttl_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET jit TO 'off'
-- text: md5 33fdba4a1ba9afdda22c3187d12a8b95

CREATE OR REPLACE FUNCTION func_cleanup_zombie_slots(p_zombie_timeout_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET jit TO 'off'
-- text: md5 4cafb18b3c74b0b81410729a7d66e110

CREATE OR REPLACE FUNCTION func_release_fair_slot(p_slot_id integer, p_enable_cooldown boolean DEFAULT true)
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
 SET jit TO 'off'
-- text: md5 faef8966a4970a84cfb26af7e84e2bbd

CREATE OR REPLACE FUNCTION func_try_acquire_slot(p_hostname_pattern text, p_ip_hash text, p_global_limit integer, p_per_ip_limit integer, p_zombie_timeout_seconds integer, p_cooldown_seconds integer)
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
 SET jit TO 'off'
-- text: md5 1445490a044292ed83428d0ba4bca3de

CREATE OR REPLACE FUNCTION slotkeeper_account_views(r slotkeeper_round)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 425a57803cb9c1b8c59f65410ba38012

CREATE OR REPLACE FUNCTION slotkeeper_admit(r slotkeeper_round, p_may_grant boolean)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
-- text: md5 7d6763b29d4d11cc0f016158ae635913

CREATE OR REPLACE FUNCTION slotkeeper_adopt(h slotkeeper_host, p slotkeeper_policy)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 6da811c1b7727087dc29077c9e982a27

CREATE OR REPLACE FUNCTION slotkeeper_advance(l slotkeeper_ledger, p_at double precision)
 RETURNS slotkeeper_ledger
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 7409a93ee88d578c7f3b326e778c2fee

CREATE OR REPLACE FUNCTION slotkeeper_announce(p_instance text, p_ttl_ms double precision, p_about jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET jit TO 'off'
 SET lock_timeout TO '3s'
 SET extra_float_digits TO '1'
-- text: md5 e99c5ac8a25f70a070dc935516778a9f

CREATE OR REPLACE FUNCTION slotkeeper_answer(h slotkeeper_host, a slotkeeper_account, e slotkeeper_entry)
 RETURNS slotkeeper_entry
 LANGUAGE plpgsql
-- text: md5 f053875f671c669b935eacb4518ec653

CREATE OR REPLACE FUNCTION slotkeeper_answer_elsewhere(p_hosts text[], p_replies jsonb[])
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
-- text: md5 f0daf38bd4bb8e6c530ce5531808b20c

CREATE OR REPLACE FUNCTION slotkeeper_best(t slotkeeper_lines, p_level double precision, p_now double precision, p_is_fifo boolean)
 RETURNS integer
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 93a4ba8b13e910fff3f33e83b5e983d3

CREATE OR REPLACE FUNCTION slotkeeper_breaker_closed()
 RETURNS slotkeeper_breaker
 LANGUAGE sql
 IMMUTABLE
-- text: md5 ec3d510f890128cf4542ace253d6019f

CREATE OR REPLACE FUNCTION slotkeeper_breaker_is_tripped(b slotkeeper_breaker, p slotkeeper_policy)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 a8ec64b4914dcd270fdb89e91b9252c3

CREATE OR REPLACE FUNCTION slotkeeper_breaker_opened(p_code integer, p_now double precision)
 RETURNS slotkeeper_breaker
 LANGUAGE sql
 IMMUTABLE
-- text: md5 b1bcebe7eb391d0e05015c14fa175ef5

CREATE OR REPLACE FUNCTION slotkeeper_breaker_read(p_host text, p_now double precision, p_open_ms double precision)
 RETURNS slotkeeper_breaker
 LANGUAGE plpgsql
-- text: md5 03365125056a926def4c1e81da3d635d

CREATE OR REPLACE FUNCTION slotkeeper_breaker_report(p_host text, p slotkeeper_policy, p_status integer, p_is_probe boolean, p_now double precision)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 50c083ad6e14418bd18c07b21b896445

CREATE OR REPLACE FUNCTION slotkeeper_breaker_view(b slotkeeper_breaker, p_now double precision)
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
-- text: md5 c4d530ff36838a9b0eaf78a9db75d286

CREATE OR REPLACE FUNCTION slotkeeper_breaker_write(p_host text, b slotkeeper_breaker)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 10355261fc364a0db4fdda5b4c99f4e6

CREATE OR REPLACE FUNCTION slotkeeper_bucket_limit(p slotkeeper_policy, p_bucket text)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 71cab0418edcade37e6da643a2cfdbb1

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 5c0d8de9ab7468ea5c72f4ca5f8a1edb

CREATE OR REPLACE FUNCTION slotkeeper_checked(p_argument text, p_value text, p_most integer)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 80014abd904f5e4a638f147e927c82dd

CREATE OR REPLACE FUNCTION slotkeeper_close(h slotkeeper_host)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 f2c5840d56e4d607850f9bb345d6d96e

CREATE OR REPLACE FUNCTION slotkeeper_conclude(r slotkeeper_round)
 RETURNS jsonb
 LANGUAGE plpgsql
-- text: md5 fc93d69ebe2de605e8452b8ade922d2c

CREATE OR REPLACE FUNCTION slotkeeper_cool_down(h slotkeeper_host, p_bucket text, p_from double precision)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 f2e684a3313cdefcfa717a0f384491b5

CREATE OR REPLACE FUNCTION slotkeeper_cools_until(p_host text, p_bucket text, p_cooldown_ms double precision)
 RETURNS double precision
 LANGUAGE plpgsql
-- text: md5 07de8bfcc6c1d2e943aef7e7390e62d3

CREATE OR REPLACE FUNCTION slotkeeper_count_waiter(h slotkeeper_host, p_bucket text, p_lasts_ms double precision, p_hostname text)
 RETURNS slotkeeper_depths
 LANGUAGE plpgsql
-- text: md5 650aa7eb598178287ee5beb41218510a

CREATE OR REPLACE FUNCTION slotkeeper_decide(p_batch jsonb, p_may_grant boolean)
 RETURNS jsonb
 LANGUAGE plpgsql
-- text: md5 58dbe36574c870606261ec57827a3ad8

CREATE OR REPLACE FUNCTION slotkeeper_depths(h slotkeeper_host, p_bucket text)
 RETURNS slotkeeper_depths
 LANGUAGE plpgsql
-- text: md5 b182795daf27ebb40c08fbc9017737c2

CREATE OR REPLACE FUNCTION slotkeeper_direct_policy(p_slots double precision, p_slots_per_bucket double precision, p_lease_ms double precision, p_open_ms double precision)
 RETURNS slotkeeper_policy
 LANGUAGE sql
 IMMUTABLE
-- text: md5 6e2f793a622f1b65fa7722f90fd9e589

CREATE OR REPLACE FUNCTION slotkeeper_direct_waiting(h slotkeeper_host, p_bucket text DEFAULT NULL::text)
 RETURNS integer
 LANGUAGE plpgsql
-- text: md5 b445e7510fc256cab10636cd41971717

CREATE OR REPLACE FUNCTION slotkeeper_displace(r slotkeeper_round, i integer, p_places integer)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
-- text: md5 e79230f5d6dc9b7bcd2043430e5a8b15

CREATE OR REPLACE FUNCTION slotkeeper_end_lease(h slotkeeper_host, p_slot upstream_slot_pool, p_at double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 7003c51a416ec9a16b946f0a61e4ad15

CREATE OR REPLACE FUNCTION slotkeeper_end_of(h slotkeeper_host, p_hit_ago_ms double precision)
 RETURNS double precision
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 9f4fccbd401a50216f29c12d041b7974

CREATE OR REPLACE FUNCTION slotkeeper_end_session(p_so_far slotkeeper_ended, p_session text, p_instance text, p_ending text, p_ttl_ms double precision)
 RETURNS slotkeeper_ended
 LANGUAGE plpgsql
-- text: md5 5fd0b6f4fc2dffdb0b9c2a2e71cecc66

CREATE OR REPLACE FUNCTION slotkeeper_find(p_host text)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 581773f11d2757cd29e514e8ffa4c80e

CREATE OR REPLACE FUNCTION slotkeeper_first_end(p_host text, p_bucket text)
 RETURNS double precision
 LANGUAGE plpgsql
-- text: md5 28c894510cde8168dd81cbc2c02c9066

CREATE OR REPLACE FUNCTION slotkeeper_forget_host(p_host text, p_fence bigint)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 490a68fe0ff68ac7e02878c2eac6eb0f

CREATE OR REPLACE FUNCTION slotkeeper_forget_sessions(p_host text, p_now double precision, p_most integer)
 RETURNS integer
 LANGUAGE plpgsql
-- text: md5 b84e45f6e021f65f19faa3f08d3ace5a

CREATE OR REPLACE FUNCTION slotkeeper_free_rows(p_ids integer[])
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 cad52c5c12d70c68ec10750286a8284f

CREATE OR REPLACE FUNCTION slotkeeper_free_slots(p_host text, p_count integer)
 RETURNS integer[]
 LANGUAGE plpgsql
-- text: md5 761febf0d5317ac57f5debc4f5cec88b

CREATE OR REPLACE FUNCTION slotkeeper_give_back(h slotkeeper_host, p_slot upstream_slot_pool, p_hit_ago_ms double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 460c1cc2689ca87a857c70b85314a61f

CREATE OR REPLACE FUNCTION slotkeeper_grace_ms()
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 209c3e9a063113dcaa28209572d2a8ff

CREATE OR REPLACE FUNCTION slotkeeper_grant(r slotkeeper_round)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
-- text: md5 b548a0c94928b0584b2ef1e45581499b

CREATE OR REPLACE FUNCTION slotkeeper_grant_direct(r slotkeeper_direct_round, p_bucket text, p_lease_ms double precision, p_is_probe boolean, p_by text)
 RETURNS slotkeeper_direct_round
 LANGUAGE plpgsql
-- text: md5 b31dd2337b814ca37e7a5deb6c98b61d

CREATE OR REPLACE FUNCTION slotkeeper_held(p_host text, p_token text)
 RETURNS upstream_slot_pool
 LANGUAGE plpgsql
-- text: md5 484cf649864bbc6cf3db2a530a03990a

CREATE OR REPLACE FUNCTION slotkeeper_host_key(p_hash text, p_name text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 98bc9d3d92398937c6d5222950fcc4df

CREATE OR REPLACE FUNCTION slotkeeper_host_keys()
 RETURNS jsonb
 LANGUAGE sql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 2ae20d9c978210a78bad58060c042a39

CREATE OR REPLACE FUNCTION slotkeeper_instances()
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 33375ba2d21c068b1ce9a5be4ea309cc

CREATE OR REPLACE FUNCTION slotkeeper_is_forgettable(h slotkeeper_host)
 RETURNS boolean
 LANGUAGE plpgsql
-- text: md5 a936b49090c73a074ec7a24f3ebe7cfd

CREATE OR REPLACE FUNCTION slotkeeper_is_passed(l slotkeeper_ledger, a slotkeeper_account)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
-- text: md5 1ee7fc1e3d6143e0de58e8fdd9b7ba43

CREATE OR REPLACE FUNCTION slotkeeper_join(r slotkeeper_round, i integer)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
-- text: md5 8de9eeacda42f19296edb6ed7b88e56d

CREATE OR REPLACE FUNCTION slotkeeper_lease_end(h slotkeeper_host)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 e937a26bb2f9b152efd6d7d48d44fc8c

CREATE OR REPLACE FUNCTION slotkeeper_level(l slotkeeper_ledger)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 ce195a473ed0c885a8514b7c6f41aad9

CREATE OR REPLACE FUNCTION slotkeeper_line_up(p_entries slotkeeper_entry[], p_is_given boolean)
 RETURNS integer[]
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 3f985187823ae9b2fb1578f20c54d86a

CREATE OR REPLACE FUNCTION slotkeeper_lines_of(r slotkeeper_round, p_line integer[])
 RETURNS slotkeeper_lines
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 7afe8fd29ae16004b57400f5e5595c03

CREATE OR REPLACE FUNCTION slotkeeper_load(h slotkeeper_host, p_waiters jsonb)
 RETURNS slotkeeper_entry[]
 LANGUAGE plpgsql
-- text: md5 a2c4c6bb6a09bf72f9d88c854d582e47

CREATE OR REPLACE FUNCTION slotkeeper_load_accounts(r slotkeeper_round)
 RETURNS slotkeeper_round
 LANGUAGE plpgsql
-- text: md5 6e56f5bdbfb66e7c44afdc855f232e70

CREATE OR REPLACE FUNCTION slotkeeper_lower(p_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 5e5a7618d81bb63d29366d6ee532da6a

CREATE OR REPLACE FUNCTION slotkeeper_move(h slotkeeper_host, p_bucket text, p_weight double precision, p_waiting integer, p_held integer)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 5b1b69530d83f353dd649a9f13d748ce

CREATE OR REPLACE FUNCTION slotkeeper_name_key(p_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 45fe2f772aec02b43ac6ae6f2333abd7

CREATE OR REPLACE FUNCTION slotkeeper_new_account(p_host text, p_bucket text, p_weight double precision, p_at double precision)
 RETURNS slotkeeper_account
 LANGUAGE sql
 IMMUTABLE
-- text: md5 f5a2648579a007b75c455a2c84854bab

CREATE OR REPLACE FUNCTION slotkeeper_new_token(p_id integer)
 RETURNS text
 LANGUAGE sql
-- text: md5 500c317c09022054c94ad940674d43a9

CREATE OR REPLACE FUNCTION slotkeeper_now()
 RETURNS double precision
 LANGUAGE sql
-- text: md5 67d0ddae9da78b9e455588ed55eca9fc

CREATE OR REPLACE FUNCTION slotkeeper_open(p_host text, p_policy slotkeeper_policy)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 1c4ff0d4639fdc1d7374e2a7a9aab632

CREATE OR REPLACE FUNCTION slotkeeper_open_direct(p_host text, p_policy slotkeeper_policy)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 815d5dcaea2a9794ee294600c98e0e1a

CREATE OR REPLACE FUNCTION slotkeeper_or_unlimited(p_limit integer)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 dc23bfdb5f81f39829573cb75848aae2

CREATE OR REPLACE FUNCTION slotkeeper_pattern_key(p_pattern text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 0daf4140907c4b1a60bd03a3bf581f09

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 d2053f05e79914f6735c42f08100b544

CREATE OR REPLACE FUNCTION slotkeeper_reclaim_aged(h slotkeeper_host, p_timeout_ms double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 02744738d2e6050d5be9d61c8e53fe42

CREATE OR REPLACE FUNCTION slotkeeper_refuse_table(p_name text, p_expected text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 4632cb729888af995640a2f902afadb5

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 190878861bb5caa1f15a011eb95e4553

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 207bd15808840ec262d5b8240e50e40e

CREATE OR REPLACE FUNCTION slotkeeper_release_direct(h slotkeeper_host, p_slot upstream_slot_pool, p_cools boolean)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 53ed1b07ac5f923c3bf8cb423c70d861

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 d780b7176489a060992164222d1d4ecd

CREATE OR REPLACE FUNCTION slotkeeper_renumber(p_id integer)
 RETURNS integer
 LANGUAGE plpgsql
-- text: md5 b55dc9ba7a89563268474dd184caa6ae

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 595732128756030a8126f5fee3bf9fbd

CREATE OR REPLACE FUNCTION slotkeeper_required(p_argument text, p_value integer, p_least integer)
 RETURNS double precision
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 eab72125795fc8b2be00a2bb810a733d

CREATE OR REPLACE FUNCTION slotkeeper_returns_free(r slotkeeper_returns, p_slot upstream_slot_pool)
 RETURNS slotkeeper_returns
 LANGUAGE plpgsql
-- text: md5 eea8621a778e143a319948abaa766397

CREATE OR REPLACE FUNCTION slotkeeper_returns_load(h slotkeeper_host, p_releases jsonb)
 RETURNS slotkeeper_returns
 LANGUAGE plpgsql
-- text: md5 2b0868249609df7e9f98f67548892df6

CREATE OR REPLACE FUNCTION slotkeeper_returns_one(r slotkeeper_returns, i integer, p_hit_ago_ms double precision, p_status integer, p_uncollected_by text)
 RETURNS slotkeeper_returns
 LANGUAGE plpgsql
-- text: md5 c9214e0916c6a12c3f38f2f923ea7e47

CREATE OR REPLACE FUNCTION slotkeeper_returns_write(r slotkeeper_returns)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 543fceb7c3432ab1e7f80839d327a338

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 54083c7c24ed90cc862a5890d7b24baa

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 ba324c4bc14a560846a39bb9eb8b4bed

CREATE OR REPLACE FUNCTION slotkeeper_set_head(t slotkeeper_lines, p_no integer, p_entries slotkeeper_entry[], a slotkeeper_account, p_now double precision)
 RETURNS slotkeeper_lines
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 6fcb1e3b26a754700a102f7cb92603bc

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 51a2a7119083f369bdbbd5ebb7da1fea

CREATE OR REPLACE FUNCTION slotkeeper_settle(h slotkeeper_host, p_now double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 a323a4b13a6ddb70afbd747026c6ad4d

CREATE OR REPLACE FUNCTION slotkeeper_shift(s slotkeeper_books, p_waiting integer, p_held integer, p_weight double precision, p_limit double precision)
 RETURNS slotkeeper_books
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 dc96b40bc25b4e12be74a2296958f26c

CREATE OR REPLACE FUNCTION slotkeeper_silence_ms()
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 1851f2dac84760ea9c3087008fce2702

CREATE OR REPLACE FUNCTION slotkeeper_snapshot(p_hosts jsonb DEFAULT NULL::jsonb)
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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 c64319009351efc458afabf897beda0d

CREATE OR REPLACE FUNCTION slotkeeper_snapshot_host(h slotkeeper_host, p_now double precision)
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE
-- text: md5 1b22e42d9fc5ff4537d1e33052798ef3

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 5a44e504ae7e1027de384471576c288e

CREATE OR REPLACE FUNCTION slotkeeper_sweep_cooldowns()
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 06ce24c758714bedffa266cb6f072370

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 9893fa1f226d27fa47ffcd04f2741e29

CREATE OR REPLACE FUNCTION slotkeeper_token_host(p_token text)
 RETURNS text
 LANGUAGE plpgsql
-- text: md5 dbc46790bf7b03987e60c790fe5efad8

CREATE OR REPLACE FUNCTION slotkeeper_token_hosts(p_releases jsonb)
 RETURNS text[]
 LANGUAGE plpgsql
-- text: md5 17f22c8b445e63f78ef93df7b1bb3019

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 27f8ff361ec6f7ad69a7931535c669a1

CREATE OR REPLACE FUNCTION slotkeeper_token_row(p_token text)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
-- text: md5 ae5ef8319eff6f05d2353fea73bbdf48

CREATE OR REPLACE FUNCTION slotkeeper_totals()
 RETURNS jsonb
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 8dcd87476e2509d9b7611cf75a934c1e

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 5d8309651f8f007fcbbf1706c8e782cf

CREATE OR REPLACE FUNCTION slotkeeper_try_direct(p_host text, p_bucket text, p_policy slotkeeper_policy, p_cooldown_ms double precision, p_by text)
 RETURNS slotkeeper_direct_answer
 LANGUAGE plpgsql
-- text: md5 0e5723d0fd449ffc4e6f7e9c4bb22db8

CREATE OR REPLACE FUNCTION slotkeeper_used(l slotkeeper_ledger, a slotkeeper_account, p_weight double precision, p_now double precision)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 6ad24478b9491db11288bf7b73da70e6

CREATE OR REPLACE FUNCTION slotkeeper_verdicts(r slotkeeper_round)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 c038ebd45122dbefba9de3a6e4b59598

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
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
-- text: md5 f7424438fdc70d677424ad679165ed41

CREATE OR REPLACE FUNCTION slotkeeper_write_grants(r slotkeeper_round)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 bea4a79ad031e773f9a16b84620f310d

CREATE OR REPLACE FUNCTION slotkeeper_write_joins(r slotkeeper_round, p_upto integer)
 RETURNS slotkeeper_entry[]
 LANGUAGE plpgsql
-- text: md5 8117ee27d391d93d98c0b0c264251804

CREATE OR REPLACE FUNCTION slotkeeper_write_waiters(r slotkeeper_round)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 35d2bbc806139e4c01161a235c1242fe

CREATE OR REPLACE FUNCTION slotkeeper_zone(p_held integer, p_weight double precision, p_level double precision)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
-- text: md5 e972f6db5ac54c92f93a29ade1fd069c
