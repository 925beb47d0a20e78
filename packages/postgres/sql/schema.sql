-- The schema that all migrations make, for reading and for the test that compares it; `slotkeeper migrate` does not use it.
-- Written by scripts/dump-schema.mjs.

CREATE TYPE slotkeeper_answer AS (
  status text,
  slot_id integer,
  token text,
  depths slotkeeper_depths,
  code integer,
  retry_in_ms double precision
);

CREATE TYPE slotkeeper_depths AS (
  host integer,
  bucket integer
);

CREATE TYPE slotkeeper_thresholds AS (
  open_ms double precision,
  window_ms double precision,
  ratio_percent double precision,
  min_samples integer,
  fast_ratio_percent double precision,
  fast_min_samples integer,
  consecutive integer
);

CREATE TYPE slotkeeper_try AS (
  host text,
  hostname text,
  bucket text,
  slots double precision,
  slots_per_bucket double precision,
  lease_ms double precision,
  cooldown_ms double precision,
  open_ms double precision,
  by_id boolean
);

CREATE TYPE slotkeeper_view AS (
  dels jsonb,
  puts jsonb,
  occupied bigint,
  of_bucket bigint,
  probes bigint
);

CREATE SEQUENCE upstream_slot_pool_id_seq AS integer INCREMENT 1 CYCLE;

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

CREATE TABLE slotkeeper_floor (
  fence bigint NOT NULL
);

CREATE TABLE slotkeeper_host (
  fence bigint NOT NULL,
  fence_before bigint NOT NULL,
  head json NOT NULL,
  host text NOT NULL,
  is_breaker_new boolean NOT NULL,
  last_now double precision NOT NULL,
  offers_until double precision NOT NULL,
  reserved_for text,
  reserved_until double precision NOT NULL DEFAULT 0,
  slots double precision NOT NULL,
  tag text NOT NULL,
  updated_at double precision NOT NULL,
  CONSTRAINT slotkeeper_host_pkey PRIMARY KEY (host)
) WITH (fillfactor=30, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE slotkeeper_instance (
  about jsonb NOT NULL,
  ends_at double precision NOT NULL,
  instance text NOT NULL,
  seen_at double precision NOT NULL,
  CONSTRAINT slotkeeper_instance_pkey PRIMARY KEY (instance)
) WITH (fillfactor=30, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE TABLE slotkeeper_migration (
  applied_at timestamp with time zone NOT NULL DEFAULT now(),
  checksum text NOT NULL,
  name text NOT NULL,
  number integer NOT NULL,
  CONSTRAINT slotkeeper_migration_pkey PRIMARY KEY (number)
);

CREATE TABLE slotkeeper_record (
  data json NOT NULL,
  host text NOT NULL,
  key text NOT NULL,
  kind text NOT NULL,
  CONSTRAINT slotkeeper_record_pkey PRIMARY KEY (host, kind, key)
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500, autovacuum_vacuum_insert_threshold=-1);

CREATE TABLE slotkeeper_ring (
  base text,
  host text NOT NULL,
  names text[] NOT NULL,
  place smallint NOT NULL,
  tag text NOT NULL,
  CONSTRAINT slotkeeper_ring_pkey PRIMARY KEY (host, place)
) WITH (fillfactor=30, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=500);

CREATE TABLE slotkeeper_token_key (
  id smallint NOT NULL,
  secret text NOT NULL,
  CONSTRAINT slotkeeper_token_key_id_check CHECK ((id = 1)),
  CONSTRAINT slotkeeper_token_key_pkey PRIMARY KEY (id)
);

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
  charge json,
  created_at timestamp with time zone NOT NULL DEFAULT now(),
  ends_at double precision,
  fence bigint,
  granted_at double precision,
  hostname_pattern text NOT NULL,
  id integer NOT NULL DEFAULT nextval('upstream_slot_pool_id_seq'::regclass),
  instance text,
  ip_hash text,
  is_probe boolean NOT NULL DEFAULT false,
  is_released boolean NOT NULL DEFAULT false,
  keep_until double precision,
  locked_at timestamp with time zone,
  session text,
  slot_index integer NOT NULL,
  status text NOT NULL DEFAULT 'available'::text,
  token text,
  width integer NOT NULL DEFAULT 1,
  CONSTRAINT upstream_slot_pool_lease CHECK (((status = 'locked'::text) = (token IS NOT NULL))),
  CONSTRAINT upstream_slot_pool_pkey PRIMARY KEY (id)
) WITH (fillfactor=40, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500);

CREATE INDEX slotkeeper_floor_fence ON slotkeeper_floor USING btree (fence);

CREATE INDEX upstream_ip_queue_depth_name ON upstream_ip_queue_depth USING btree (hostname, ip_hash) WHERE (hostname IS NOT NULL);

CREATE UNIQUE INDEX upstream_slot_pool_slot ON upstream_slot_pool USING btree (hostname_pattern, slot_index);

COMMENT ON COLUMN slotkeeper_host.fence_before IS 'The fence before the last commit.';

COMMENT ON COLUMN slotkeeper_host.is_breaker_new IS 'The last commit changed the breaker. Like fence_before, it saves the commit from reading the row before it writes it.';

COMMENT ON COLUMN slotkeeper_host.last_now IS 'The latest store time of any commit: now of the head.';

COMMENT ON COLUMN slotkeeper_host.offers_until IS 'The latest time at which an offer lapses. After it, offers need not be counted.';

COMMENT ON COLUMN slotkeeper_host.reserved_for IS 'Until reserved_until only this instance may commit. Empty: any instance, but no direct caller may take a slot.';

COMMENT ON COLUMN slotkeeper_host.slots IS 'Like fence and last_now, a field of the head that every commit needs. Infinity: no limit.';

COMMENT ON COLUMN slotkeeper_host.updated_at IS 'When the last commit was made, by the clock of the database.';

COMMENT ON COLUMN slotkeeper_instance.ends_at IS 'The instance counts as alive until then.';

COMMENT ON TABLE slotkeeper_record IS 'kind: account, waiter, session, offer, absence, budget or limits. data: the other fields of the record.';

COMMENT ON TABLE slotkeeper_ring IS 'A commit is at the place of its number modulo 64; the number is the part of its tag before the dot. names: "kind key" of the records that it changed. A commit that no other instance needs is missing.';

COMMENT ON COLUMN upstream_ip_cooldown.cool_until IS 'The cooldown by the limits of the host. NULL: only a release by a direct caller is known.';

COMMENT ON COLUMN upstream_ip_cooldown.is_direct IS 'A direct caller released here. Each attempt has its own cooldown, counted from last_release_at, so the row is kept for an hour.';

COMMENT ON COLUMN upstream_ip_queue_depth.expiries IS 'When each registered waiter stops counting, in ascending order. waiting_count is their number at the last write, expires_at the last of them.';

COMMENT ON COLUMN upstream_ip_queue_depth.hostname IS 'In lower case. Set only if the host''s key is not the SHA-256 of this name.';

COMMENT ON TABLE upstream_slot_pool IS 'hostname_pattern is empty in rows of forgotten hosts, which the next host uses.';

COMMENT ON COLUMN upstream_slot_pool.width IS 'How many slots of the host the lease occupies.';

CREATE OR REPLACE FUNCTION download_check_throttle_protection(p_hostname_hash text, p_hostname text, p_throttle_time_window integer DEFAULT 60, p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION'::text)
 RETURNS TABLE(is_protected boolean, error_code integer, retry_after integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET enable_seqscan TO 'off'
-- text: md5 71bc471cfa113d7fe1248a74a75e85eb

CREATE OR REPLACE FUNCTION download_register_fq_waiter(p_hostname_hash text, p_hostname text, p_ip_bucket text, p_max_waiters_per_ip integer DEFAULT 0, p_zombie_timeout_seconds integer DEFAULT 20, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text, p_max_waiters_per_host integer DEFAULT 0)
 RETURNS TABLE(status text, queue_depth integer, ip_queue_depth integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
-- text: md5 18477791c5f280318322e54f16cdf366

CREATE OR REPLACE FUNCTION download_release_fq_waiter(p_hostname text, p_ip_bucket text, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET enable_seqscan TO 'off'
-- text: md5 d36f62b4e0f18750f4c99764c0e28c9f

CREATE OR REPLACE FUNCTION download_release_slot(p_hostname_hash text, p_ip_bucket text, p_slot_token text, p_now_ms bigint)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
-- text: md5 07c22a632990fa00f0b86003f2c54b02

CREATE OR REPLACE FUNCTION download_try_acquire_slot(p_hostname_hash text, p_hostname text, p_ip_bucket text, p_now_ms bigint, p_max_slot_per_host integer, p_max_slot_per_ip integer, p_max_waiters_per_ip integer DEFAULT 0, p_zombie_timeout integer DEFAULT 30, p_cooldown_seconds integer DEFAULT 0, p_throttle_time_window integer DEFAULT 60, p_throttle_table_name text DEFAULT 'THROTTLE_PROTECTION'::text, p_queue_depth_table_name text DEFAULT 'upstream_ip_queue_depth'::text)
 RETURNS TABLE(status text, slot_token text, queue_depth integer, ip_queue_depth integer, throttle_code integer, throttle_retry_after integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
-- text: md5 40a19ff498ec9b0d397e230d5890fb94

CREATE OR REPLACE FUNCTION download_upsert_throttle_protection(p_hostname_hash text, p_hostname text, p_now integer, p_is_error boolean, p_status_code integer, p_throttle_time_window integer, p_observe_window_seconds integer, p_error_ratio_percent integer, p_consecutive_threshold integer, p_min_sample_count integer, p_fast_error_ratio_percent integer DEFAULT NULL::integer, p_fast_min_sample_count integer DEFAULT NULL::integer, p_table_name text DEFAULT 'THROTTLE_PROTECTION'::text)
 RETURNS TABLE("HOSTNAME_HASH" text, "HOSTNAME" text, "ERROR_TIMESTAMP" integer, "IS_PROTECTED" integer, "LAST_ERROR_CODE" integer, "OBS_WINDOW_START" integer, "OBS_ERROR_COUNT" integer, "OBS_SUCCESS_COUNT" integer, "CONSECUTIVE_ERROR_COUNT" integer)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
-- text: md5 7327d264ce48d339ad645d14275b4167

CREATE OR REPLACE FUNCTION func_cleanup_ip_cooldown(p_ttl_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
-- text: md5 44b88071911bf81336f014b4241cfd45

CREATE OR REPLACE FUNCTION func_cleanup_queue_depth(p_ttl_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
-- text: md5 33fdba4a1ba9afdda22c3187d12a8b95

CREATE OR REPLACE FUNCTION func_cleanup_zombie_slots(p_zombie_timeout_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET extra_float_digits TO '1'
-- text: md5 ca358a037419ff8e99805a537f6d41c4

CREATE OR REPLACE FUNCTION func_release_fair_slot(p_slot_id integer, p_enable_cooldown boolean DEFAULT true)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
-- text: md5 a90c3cc54b7d5b1582a8173d6783b364

CREATE OR REPLACE FUNCTION func_try_acquire_slot(p_hostname_pattern text, p_ip_hash text, p_global_limit integer, p_per_ip_limit integer, p_zombie_timeout_seconds integer, p_cooldown_seconds integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '3s'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
-- text: md5 41096851b1a8a91e16cfadff4d738c42

CREATE OR REPLACE FUNCTION slotkeeper_adds_offer(p_host text, p_now double precision, p_records text[])
 RETURNS boolean
 LANGUAGE plpgsql
-- text: md5 94b8fa48e4794fe364c03eeb6951f405

CREATE OR REPLACE FUNCTION slotkeeper_beat(p_schema integer, p_instance text, p_ttl_ms double precision, p_about jsonb, p_hosts text[], p_tags text[], p_echo boolean)
 RETURNS json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '2s'
 SET extra_float_digits TO '1'
-- text: md5 3cb94c0db2a4aa51439b60c613952f0c

CREATE OR REPLACE FUNCTION slotkeeper_book(h slotkeeper_host)
 RETURNS json
 LANGUAGE plpgsql
 STABLE
-- text: md5 d74aff5b78e061c2c422d35f20d2679f

CREATE OR REPLACE FUNCTION slotkeeper_breaker(p_host text, p_now double precision)
 RETURNS "THROTTLE_PROTECTION"
 LANGUAGE plpgsql
-- text: md5 e12590046554836c2f1172a86f15a060

CREATE OR REPLACE FUNCTION slotkeeper_breaker_closes_at(p_head json)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 1e807e910a021df3ecb4a1f624168670

CREATE OR REPLACE FUNCTION slotkeeper_changes(h slotkeeper_host, p_since text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE
-- text: md5 1cc600edc0c796af8ba56a5d6c37d24e

CREATE OR REPLACE FUNCTION slotkeeper_channel(p_instance text)
 RETURNS text
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
-- text: md5 391a6d3a9ebf2693fb8c35fe75297349

CREATE OR REPLACE FUNCTION slotkeeper_channel_of(p_instance text)
 RETURNS text
 LANGUAGE sql
 STABLE
-- text: md5 bc443facc0c2d822c788443ce9a57e80

CREATE OR REPLACE FUNCTION slotkeeper_check_room(p_host text, p_count integer, p_now double precision, p_most double precision, p_offers_until double precision)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 3fecbbaf26ce60c529a0c925ae9d8919

CREATE OR REPLACE FUNCTION slotkeeper_check_schema(p_schema integer)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 3b536d4154dea3a543fe98fba8c12402

CREATE OR REPLACE FUNCTION slotkeeper_checked(p_argument text, p_value text, p_most integer)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 80014abd904f5e4a638f147e927c82dd

CREATE OR REPLACE FUNCTION slotkeeper_closed_breaker()
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
-- text: md5 fb07c4c2f24d975ce77ccdc65508265e

CREATE OR REPLACE FUNCTION slotkeeper_commit(p_schema integer, p_host text, p_instance text, p_base text, p_tag text, p_now double precision, p_conflicts integer, p_head json, p_slots double precision, p_fence bigint, p_offers_until double precision, p_records text[], p_leases text[], p_numbers double precision[], p_ended text[], p_names text[], p_wake text[], p_notice text, p_most double precision DEFAULT NULL::double precision, p_lock_timeout text DEFAULT NULL::text)
 RETURNS json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '500ms'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_material TO 'off'
-- text: md5 4fafca129874c7a273ef7dc8979ea707

CREATE OR REPLACE FUNCTION slotkeeper_commit_all(p_schema integer, p_commits json)
 RETURNS json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
-- text: md5 02ebebb9525cde93fc6f6111f124bda3

CREATE OR REPLACE FUNCTION slotkeeper_commit_direct(h slotkeeper_host, p_head jsonb, p_puts jsonb DEFAULT '[]'::jsonb, p_dels jsonb DEFAULT '[]'::jsonb, p_most double precision DEFAULT NULL::double precision)
 RETURNS boolean
 LANGUAGE plpgsql
-- text: md5 3561d7d457438a4c0e86c9e4ae94876d

CREATE OR REPLACE FUNCTION slotkeeper_commit_locked(p_host text, p_instance text, p_base text, p_tag text, p_now double precision, p_forgets boolean, p_conflicts integer)
 RETURNS json
 LANGUAGE plpgsql
-- text: md5 b3ef3233bc27b96d6155bc7aa1722f0d

CREATE OR REPLACE FUNCTION slotkeeper_cools_until(p_host text, p_bucket text, p_cooldown_ms double precision)
 RETURNS double precision
 LANGUAGE plpgsql
-- text: md5 b39fc3126bc992ab41210ce25d533b9e

CREATE OR REPLACE FUNCTION slotkeeper_copy_breaker(p_host text, p_head json)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 0a0ffbbe7c471fd799b1259a00f4c855

CREATE OR REPLACE FUNCTION slotkeeper_count_waiter(h slotkeeper_host, p_bucket text, p_lasts_ms double precision, p_hostname text)
 RETURNS slotkeeper_depths
 LANGUAGE plpgsql
-- text: md5 b9927c18fed8895ffa3ac8c1df08601c

CREATE OR REPLACE FUNCTION slotkeeper_depths(p_host text, p_bucket text, p_now double precision)
 RETURNS slotkeeper_depths
 LANGUAGE plpgsql
-- text: md5 350ddc5b86f923eddbf6fcd12d4d5ecb

CREATE OR REPLACE FUNCTION slotkeeper_end_kept_until(p_deadline double precision, p_ended_at double precision)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 8e94835f45af23475a41081becc803fe

CREATE OR REPLACE FUNCTION slotkeeper_find(p_host text)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 700f43f997619fc767dfae18d4b79a87

CREATE OR REPLACE FUNCTION slotkeeper_first_now(p_floor bigint, p_clock double precision)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 97872021f0230ed700e7c57f57b9bbe1

CREATE OR REPLACE FUNCTION slotkeeper_floor()
 RETURNS bigint
 LANGUAGE sql
 STABLE
-- text: md5 6c9d1420a50452ce462b48fa0fe1eb52

CREATE OR REPLACE FUNCTION slotkeeper_forget(h slotkeeper_host)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 4738e3c0a456b3426c55f2517c572a84

CREATE OR REPLACE FUNCTION slotkeeper_forget_hosts(p_schema integer, p_idle_ms double precision, p_after text, p_count integer)
 RETURNS json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '2s'
-- text: md5 573db19dc03c12df0390639a447d7c0a

CREATE OR REPLACE FUNCTION slotkeeper_forget_rows(p_schema integer)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '2s'
-- text: md5 6bf2d8801dee647324c40476132d53b6

CREATE OR REPLACE FUNCTION slotkeeper_free_slots(p_host text, p_count integer, p_now double precision, p_most double precision, p_offers_until double precision)
 RETURNS integer[]
 LANGUAGE plpgsql
-- text: md5 6e00ae56c5e8ae48facfff7c221c6fbb

CREATE OR REPLACE FUNCTION slotkeeper_grant_direct(h slotkeeper_host, t slotkeeper_try, v slotkeeper_view, p_is_probe boolean, p_sets_slots boolean)
 RETURNS text
 LANGUAGE plpgsql
-- text: md5 a0e109d820787654ff9fb41a7fcd2e4b

CREATE OR REPLACE FUNCTION slotkeeper_host_key(p_hash text, p_name text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 30f8f244bad746f2c82a0f4062ef46e3

CREATE OR REPLACE FUNCTION slotkeeper_host_keys(p_schema integer)
 RETURNS json
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
-- text: md5 7fd1ee9e48f1e0c3b0285dc2cfb4f1ac

CREATE OR REPLACE FUNCTION slotkeeper_instances(p_schema integer)
 RETURNS json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET extra_float_digits TO '1'
-- text: md5 14a6edfe4d1a61c1e284010c3208f894

CREATE OR REPLACE FUNCTION slotkeeper_is_over(s upstream_slot_pool, p_now double precision, p_timeout_ms double precision)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
-- text: md5 328b9760e67dff3e776e5edde8ba7bac

CREATE OR REPLACE FUNCTION slotkeeper_is_unused(h slotkeeper_host, p_idle_ms double precision)
 RETURNS boolean
 LANGUAGE plpgsql
-- text: md5 9f00da9477fe98dba2203826a2edfb69

CREATE OR REPLACE FUNCTION slotkeeper_last_slot(p_host text)
 RETURNS integer
 LANGUAGE sql
 STABLE
-- text: md5 744e9be8801fddfdfe0d344dfd253ee5

CREATE OR REPLACE FUNCTION slotkeeper_lease(s upstream_slot_pool)
 RETURNS json
 LANGUAGE sql
 STABLE
-- text: md5 93bb129985d9c06dfe071f8744e25884

CREATE OR REPLACE FUNCTION slotkeeper_limits(p_host text)
 RETURNS jsonb
 LANGUAGE plpgsql
-- text: md5 a877559abe7e2b822683ad0f376e220d

CREATE OR REPLACE FUNCTION slotkeeper_look(h slotkeeper_host, p_bucket text, p_timeout_ms double precision)
 RETURNS slotkeeper_view
 LANGUAGE plpgsql
-- text: md5 436e761cc0e9a93776c11bc076bd027e

CREATE OR REPLACE FUNCTION slotkeeper_missing_rights(p_schema oid)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'public', 'pg_temp'
-- text: md5 c01dd6965d766488b865b8fa7ae62a77

CREATE OR REPLACE FUNCTION slotkeeper_name_key(p_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 0df536cad61e05496578f4dd1dfbd532

CREATE OR REPLACE FUNCTION slotkeeper_next_tag(p_tag text)
 RETURNS text
 LANGUAGE sql
-- text: md5 bdb66ca34ea0b4d1a8e6cc5a3638f898

CREATE OR REPLACE FUNCTION slotkeeper_notify(p_instances text[], p_host text, p_notice text)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 a036fdfadd08d538f004e44178bd2080

CREATE OR REPLACE FUNCTION slotkeeper_now()
 RETURNS double precision
 LANGUAGE sql
-- text: md5 67d0ddae9da78b9e455588ed55eca9fc

CREATE OR REPLACE FUNCTION slotkeeper_number(p_tag text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
-- text: md5 0a13b44f860ba8eaedaeeef6e9ce7d75

CREATE OR REPLACE FUNCTION slotkeeper_occupied(p_host text, p_now double precision, p_offers_until double precision)
 RETURNS bigint
 LANGUAGE plpgsql
-- text: md5 bbe61f53b27d0f80810cd1c852156e0a

CREATE OR REPLACE FUNCTION slotkeeper_offers(p_host text, p_now double precision)
 RETURNS bigint
 LANGUAGE plpgsql
-- text: md5 2007a34ff337d3667754d51dee61f3c4

CREATE OR REPLACE FUNCTION slotkeeper_open(p_host text, p_hostname text, p_slots double precision)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 d5aded3bbb990c0e4eb4434b8334f220

CREATE OR REPLACE FUNCTION slotkeeper_open_ms(p_seconds integer)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 7fb26fdc87fc4ea68e479b1f60c24774

CREATE OR REPLACE FUNCTION slotkeeper_or_unlimited(p_limit integer)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 dc23bfdb5f81f39829573cb75848aae2

CREATE OR REPLACE FUNCTION slotkeeper_own_name(p_host text, p_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 b2d4c9b3da2256e06adb76a94644da38

CREATE OR REPLACE FUNCTION slotkeeper_pattern_key(p_pattern text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 4fd18fc7eaf9dbc2681a38c97e8c90af

CREATE OR REPLACE FUNCTION slotkeeper_peek(p_schema integer, p_hosts text[])
 RETURNS json
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET extra_float_digits TO '1'
-- text: md5 11f33e71c40dd705b1830b90f5fc13b3

CREATE OR REPLACE FUNCTION slotkeeper_plain_name(p_name text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 1e27f644638002fd0621995017478c9d

CREATE OR REPLACE FUNCTION slotkeeper_random()
 RETURNS text
 LANGUAGE sql
-- text: md5 5672dd0dd58786a78769148c488764f5

CREATE OR REPLACE FUNCTION slotkeeper_read(p_schema integer, p_host text, p_since text)
 RETURNS json
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
-- text: md5 9aeeab145ee99bfd6dc0fd4229fc2905

CREATE OR REPLACE FUNCTION slotkeeper_ready(p_schema integer, p_echoes text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'public', 'pg_temp'
-- text: md5 652a139e79806ae2a438a154cb5911d9

CREATE OR REPLACE FUNCTION slotkeeper_refusal(p_reserved_for text, p_reserved_until double precision, p_stored text, p_instance text, p_base text, p_now double precision, p_clock double precision)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 7957592b98309bfd68630ae6b47789b5

CREATE OR REPLACE FUNCTION slotkeeper_refuse(h slotkeeper_host, p_instance text, p_base text, p_tag text, p_conflicts integer, p_clock double precision, p_refusal text)
 RETURNS json
 LANGUAGE plpgsql
-- text: md5 a3ad48b39a198efe5cd09d1746ae445c

CREATE OR REPLACE FUNCTION slotkeeper_refuse_slots(p_host text, p_occupied bigint, p_slots double precision)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 e0b6e941341788216f89cc5980c1c32d

CREATE OR REPLACE FUNCTION slotkeeper_refuse_table(p_name text, p_expected text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 4632cb729888af995640a2f902afadb5

CREATE OR REPLACE FUNCTION slotkeeper_release_direct(h slotkeeper_host, s upstream_slot_pool, p_cools boolean)
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 e86e10f59d9b772017de8a16667a0f5c

CREATE OR REPLACE FUNCTION slotkeeper_released_session(s upstream_slot_pool, p_now double precision)
 RETURNS jsonb
 LANGUAGE sql
 STABLE
-- text: md5 be1f5282f56d77d38d062dc32a0e1113

CREATE OR REPLACE FUNCTION slotkeeper_renumber(p_id integer)
 RETURNS integer
 LANGUAGE plpgsql
-- text: md5 50b951f46bf4b3e176a543f806fd240f

CREATE OR REPLACE FUNCTION slotkeeper_reply(h slotkeeper_host, p_since text, p_now double precision, p_refusal text DEFAULT NULL::text)
 RETURNS json
 LANGUAGE plpgsql
 STABLE
-- text: md5 ec61a689b0cfc87cc828107ec77044c3

CREATE OR REPLACE FUNCTION slotkeeper_report_direct(b "THROTTLE_PROTECTION", p_is_error boolean, p_code integer, t slotkeeper_thresholds, p_now double precision)
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 a77164b09609c67846027ade677cc3e8

CREATE OR REPLACE FUNCTION slotkeeper_required(p_argument text, p_value integer, p_least integer)
 RETURNS double precision
 LANGUAGE plpgsql
 IMMUTABLE
-- text: md5 eab72125795fc8b2be00a2bb810a733d

CREATE OR REPLACE FUNCTION slotkeeper_schema_number()
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
-- text: md5 0df94e01a9bac1ebb35ed4cfae23bb4f

CREATE OR REPLACE FUNCTION slotkeeper_sha256(p_text text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
-- text: md5 560094cf4145dbba5991ec0244bbf179

CREATE OR REPLACE FUNCTION slotkeeper_spaced_until(p_head json, p_limits json)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 c02c43ad688e3dcb44337c23e03ee221

CREATE OR REPLACE FUNCTION slotkeeper_start_forgotten(p_now double precision)
 RETURNS double precision
 LANGUAGE sql
 IMMUTABLE
-- text: md5 f2794c1e05364ce1f0ba17a5e8c26e6f

CREATE OR REPLACE FUNCTION slotkeeper_token_keys(p_schema integer, p_new_secret text)
 RETURNS json
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET lock_timeout TO '2s'
-- text: md5 8c16971f0a9fe5d19f611836bb4d4308

CREATE OR REPLACE FUNCTION slotkeeper_totals(p_schema integer)
 RETURNS json
 LANGUAGE plpgsql
 STABLE SECURITY DEFINER
 SET search_path TO 'public', 'pg_temp'
 SET extra_float_digits TO '1'
 SET jit TO 'off'
-- text: md5 5b2f698a6900d3182474d6d9589275a7

CREATE OR REPLACE FUNCTION slotkeeper_try_direct(t slotkeeper_try)
 RETURNS slotkeeper_answer
 LANGUAGE plpgsql
-- text: md5 75bd0aa8226945898e8096c39b8c4a35

CREATE OR REPLACE FUNCTION slotkeeper_unknown_host(p_host text)
 RETURNS slotkeeper_host
 LANGUAGE plpgsql
-- text: md5 62ac598bc41cc91b3192b01b87cf6848

CREATE OR REPLACE FUNCTION slotkeeper_write_cooldowns(p_host text, p_now double precision, p_records text[])
 RETURNS void
 LANGUAGE plpgsql
-- text: md5 cd737cd77516d0c921a3ee4d497eb3e8

CREATE OR REPLACE FUNCTION slotkeeper_write_leases(p_host text, p_fence bigint, p_now double precision, p_most double precision, p_offers_until double precision, p_leases text[], p_numbers double precision[], p_ended text[])
 RETURNS boolean
 LANGUAGE plpgsql
-- text: md5 00efa378ad77a9f359cc6a0fc34bd373
