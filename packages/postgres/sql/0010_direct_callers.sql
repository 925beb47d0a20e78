-- What direct callers need: programs that use the functions of docs/reference/sql.md without the service between. They
-- count against the same rows, under the same host lock (rules L1 to L4 of 0002), so every limit holds for both together;
-- only the order is not theirs: a direct caller takes a free slot when it asks, whoever waits.
--
--   D1 limits are the caller's own, but that what users of a named semaphore fixed or an operator set comes first
--   D2 a slot is given back by its token, or, if func_try_acquire_slot gave it out, by its id; neither is given out twice
--   D3 time is the database's; instants that callers bring are not read
--   D4 a try that fails writes nothing but the host's own row

-- Waiters that direct callers count have no names. Each keeps its own end, so that one that died stops counting though
-- others of its bucket go on registering; whoever leaves is taken for the one that would end first.
ALTER TABLE upstream_ip_queue_depth ADD COLUMN expiries double precision[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN upstream_ip_queue_depth.expiries IS
  'When each counted waiter stops counting, ascending. waiting_count is their number when last written, expires_at the last.';

-- Only a direct caller knows its cooldown, and says so when it tries: the service's sweep keeps such releases for an hour.
ALTER TABLE upstream_ip_cooldown ADD COLUMN is_direct boolean NOT NULL DEFAULT false;
CREATE OR REPLACE FUNCTION slotkeeper_sweep_cooldowns() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' AS $$
DECLARE
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_cooldown WHERE (hostname_pattern, ip_hash) IN (
    SELECT hostname_pattern, ip_hash FROM upstream_ip_cooldown
    WHERE coalesce(cool_until, 0) <= slotkeeper_now()
      AND (NOT is_direct OR extract(epoch FROM last_release_at) * 1000 <= slotkeeper_now() - 3600000)
    FOR UPDATE SKIP LOCKED
  );
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;

-- download_release_fq_waiter knows a host by its name only; the one that registered may have brought a hash of its own. The
-- index has those rows only, and its columns never change.
ALTER TABLE upstream_ip_queue_depth ADD COLUMN hostname text;
CREATE INDEX upstream_ip_queue_depth_name ON upstream_ip_queue_depth (hostname, ip_hash) WHERE hostname IS NOT NULL;
COMMENT ON COLUMN upstream_ip_queue_depth.hostname IS 'In lower case, where the host''s key is not its SHA-256.';

-- Not lower() alone: what that does to an I depends on the database's language.
CREATE FUNCTION slotkeeper_lower(p_name text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN octet_length(p_name) = char_length(p_name) THEN lower(p_name COLLATE "C") ELSE lower(p_name) END
$$;

CREATE FUNCTION slotkeeper_checked(p_argument text, p_value text, p_most integer) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF char_length(p_value) > p_most OR p_value ~ '[\x01-\x1f\x7f]' THEN
    RAISE EXCEPTION 'Expected % to be at most % characters without control characters, got % characters',
      p_argument, p_most, char_length(p_value) USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN p_value;
END $$;

CREATE FUNCTION slotkeeper_name_key(p_name text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT encode(sha256(convert_to(slotkeeper_lower(p_name), 'UTF8')), 'hex') $$;

-- The hash, else the SHA-256 in hex of the lower-cased name: a hashing caller and a plain one meet in one pool.
CREATE FUNCTION slotkeeper_host_key(p_hash text, p_name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_key text := coalesce(
    nullif(slotkeeper_checked('p_hostname_hash', p_hash, 128), ''),
    slotkeeper_name_key(nullif(slotkeeper_checked('p_hostname', p_name, 255), '')));
BEGIN
  IF v_key IS NULL THEN
    RAISE EXCEPTION 'Expected a hostname or its hash, got neither' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN v_key;
END $$;

-- A pattern is a name, or the key itself: no hostname is a SHA-256 in hex.
CREATE FUNCTION slotkeeper_pattern_key(p_pattern text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_pattern ~ '^[0-9a-f]{64}$' THEN p_pattern ELSE slotkeeper_host_key(NULL, p_pattern) END
$$;

CREATE FUNCTION slotkeeper_refuse_table(p_name text, p_expected text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_name IS DISTINCT FROM p_expected THEN
    RAISE EXCEPTION 'Expected the table to be %, got %: other tables are not served', p_expected, coalesce(p_name, 'NULL')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
END $$;

CREATE FUNCTION slotkeeper_required(p_argument text, p_value integer, p_least integer) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_value IS NULL OR p_value < p_least THEN
    RAISE EXCEPTION 'Expected % to be at least %, got %', p_argument, p_least, coalesce(p_value::text, 'NULL')
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN p_value;
END $$;

-- 0 and below: no limit.
CREATE FUNCTION slotkeeper_or_unlimited(p_limit integer) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN p_limit > 0 THEN p_limit ELSE 'Infinity'::double precision END $$;

-- The limits of a host that no instance of the service has spoken for; what a direct caller does not say is the default.
CREATE FUNCTION slotkeeper_direct_policy(
  p_slots double precision, p_slots_per_bucket double precision, p_lease_ms double precision, p_open_ms double precision
) RETURNS slotkeeper_policy
LANGUAGE sql IMMUTABLE AS $$
  SELECT ROW(p_slots, p_slots_per_bucket, 'Infinity', 'Infinity', p_lease_ms, 3600000, 0, 0, 0, 'direct',
    60000, '{429,500,502,503,504}'::integer[], 20, 8, 50, 4, 4, p_open_ms, 1)::slotkeeper_policy
$$;

-- A host, locked and settled. An instance's limits stay in force; a direct caller's give way to the next.
CREATE FUNCTION slotkeeper_open_direct(p_host text, p_policy slotkeeper_policy) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := slotkeeper_find(p_host);
BEGIN
  IF h.host IS NULL THEN RETURN slotkeeper_open(p_host, p_policy); END IF;
  IF (h.policy).sequence = 'direct' THEN RETURN slotkeeper_adopt(h, p_policy); END IF;
  RETURN h;
END $$;

CREATE OR REPLACE FUNCTION slotkeeper_direct_waiting(h slotkeeper_host, p_bucket text DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
  IF h.direct_waiting <= 0 THEN RETURN 0; END IF;
  RETURN (
    SELECT count(*) FROM upstream_ip_queue_depth d, unnest(d.expiries) e
    WHERE d.hostname_pattern = h.host AND d.expires_at > h.touched_at AND e > h.touched_at
      AND (p_bucket IS NULL OR d.ip_hash = p_bucket)
  );
END $$;

CREATE TYPE slotkeeper_depths AS (host integer, bucket integer);

-- Who waits, the service's and those that direct callers counted.
CREATE FUNCTION slotkeeper_depths(h slotkeeper_host, p_bucket text) RETURNS slotkeeper_depths
LANGUAGE plpgsql AS $$
BEGIN
  RETURN ROW(
    (h.ledger).waiting + slotkeeper_direct_waiting(h),
    coalesce((SELECT waiting FROM slotkeeper_account WHERE host = h.host AND bucket = p_bucket), 0)
      + slotkeeper_direct_waiting(h, p_bucket)
  )::slotkeeper_depths;
END $$;

-- The original went by locked_at, and so may a person who frees slots by hand: a slot of a direct caller that is older
-- than its lease, and than p_timeout_ms, is over. An instance's slot lasts as long as its lease.
CREATE FUNCTION slotkeeper_reclaim_aged(h slotkeeper_host, p_timeout_ms double precision) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
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
END $$;

-- Until when a bucket cools down, for a caller with a cooldown of its own.
CREATE FUNCTION slotkeeper_cools_until(p_host text, p_bucket text, p_cooldown_ms double precision) RETURNS double precision
LANGUAGE plpgsql AS $$
BEGIN
  IF p_bucket = '' THEN RETURN 0; END IF;
  RETURN coalesce((
    -- Without a cooldown a release of this very moment must not count: as a timestamp it may be rounded up.
    SELECT greatest(cool_until, CASE WHEN p_cooldown_ms > 0 THEN extract(epoch FROM last_release_at) * 1000 + p_cooldown_ms END)
    FROM upstream_ip_cooldown
    WHERE hostname_pattern = p_host AND ip_hash = p_bucket
  ), 0);
END $$;

CREATE TYPE slotkeeper_direct_answer AS (
  status text,
  slot_id integer,
  token text,
  depths slotkeeper_depths,
  code integer,
  retry_in_ms double precision
);
CREATE TYPE slotkeeper_direct_round AS (h slotkeeper_host, a slotkeeper_direct_answer);

-- Rows that func_try_acquire_slot gives out get a new id each time: a bare id, kept too long, must not free a stranger's
-- slot. Of numbers that the sequence will not reach, nine digits as in every token.
CREATE FUNCTION slotkeeper_renumber(p_id integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_id integer;
BEGIN
  LOOP
    v_id := 500000000 + floor(random() * 500000000)::integer;
    EXIT WHEN NOT EXISTS (SELECT FROM upstream_slot_pool WHERE id = v_id);
  END LOOP;
  UPDATE upstream_slot_pool SET id = v_id WHERE id = p_id;
  RETURN v_id;
END $$;

-- Gives a free slot to a direct caller. p_by: 'token' or 'id'.
CREATE FUNCTION slotkeeper_grant_direct(
  r slotkeeper_direct_round, p_bucket text, p_lease_ms double precision, p_is_probe boolean, p_by text
) RETURNS slotkeeper_direct_round
LANGUAGE plpgsql AS $$
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
END $$;

-- One try. p_policy: the caller's limits, lease and window; p_by: how the slot will be given back.
CREATE FUNCTION slotkeeper_try_direct(
  p_host text, p_bucket text, p_policy slotkeeper_policy, p_cooldown_ms double precision, p_by text
) RETURNS slotkeeper_direct_answer
LANGUAGE plpgsql AS $$
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
END $$;

-- Gives back a slot that was looked up by id, of a host that is locked and settled. The bucket's release is noted for
-- callers with a cooldown of their own, beside the one that the host's limits ask for.
CREATE FUNCTION slotkeeper_release_direct(h slotkeeper_host, p_slot upstream_slot_pool, p_cools boolean) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_policy slotkeeper_policy := h.policy;
  p slotkeeper_policy := h.policy;
BEGIN
  IF NOT p_cools THEN
    p.cooldown_ms := 0;
    h.policy := p;
  ELSIF p_slot.ip_hash <> '' THEN
    INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at, is_direct)
    VALUES (h.host, p_slot.ip_hash, to_timestamp(h.touched_at / 1000), true)
    ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET is_direct = true,
      last_release_at = greatest(c.last_release_at, excluded.last_release_at);
  END IF;
  h := slotkeeper_give_back(h, p_slot, NULL);
  h.policy := v_policy;
  PERFORM slotkeeper_close(h);
END $$;
