-- The inner functions for direct callers: programs that use the functions of docs/reference/sql.md without the service.
-- These functions lock the host's row, count the same rows, and write ordinary change sets. So every limit applies to
-- direct callers and the service together.
--
--   DIRECT1 The limits are those of the caller, but the capacity of a named semaphore and the limits of an operator
--     have priority.
--   DIRECT2 A slot is released by its token, or by its id if func_try_acquire_slot granted it. No token or id is used
--     twice.
--   DIRECT3 All times are those of the database; instants that callers send are ignored.
--   DIRECT4 A failed attempt writes nothing.
--   DIRECT5 The service has priority. If a direct caller releases a slot while sessions wait for the host, the slot is
--     reserved for the service for 50 ms. While an instance has reserved the next commit, or a session that needs several
--     slots is the first of the host, no direct caller gets a slot.

-- A name in the form that is hashed and compared: lower-cased, without a trailing dot; NULL if nothing is left.
-- Not lower() alone: its result for an I depends on the locale of the database.
CREATE FUNCTION slotkeeper_plain_name(p_name text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT nullif(regexp_replace(
    CASE WHEN octet_length(p_name) = char_length(p_name) THEN lower(p_name COLLATE "C") ELSE lower(p_name) END, '\.$', ''), '')
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

CREATE FUNCTION slotkeeper_sha256(p_text text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT encode(sha256(convert_to(p_text, 'UTF8')), 'hex') $$;

CREATE FUNCTION slotkeeper_name_key(p_name text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT slotkeeper_sha256(slotkeeper_plain_name(p_name)) $$;

-- The hash in lower case, otherwise the SHA-256 in hex of the plain name. A hash of the name exactly as it was sent
-- stands for the plain name, too. So callers with the hash and callers with the name share one pool.
CREATE FUNCTION slotkeeper_host_key(p_hash text, p_name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_hash text := nullif(lower(slotkeeper_checked('p_hostname_hash', p_hash, 128) COLLATE "C"), '');
  v_name_key text := slotkeeper_name_key(slotkeeper_checked('p_hostname', p_name, 255));
  v_key text := CASE WHEN v_hash = slotkeeper_sha256(p_name) THEN v_name_key ELSE coalesce(v_hash, v_name_key) END;
BEGIN
  IF v_key IS NULL THEN
    RAISE EXCEPTION 'Expected a hostname or its hash, got neither' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  RETURN v_key;
END $$;

-- A pattern is a name or the key itself: no hostname is a SHA-256 in hex.
CREATE FUNCTION slotkeeper_pattern_key(p_pattern text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_pattern ~* '^[0-9a-f]{64}$' THEN lower(p_pattern COLLATE "C") ELSE slotkeeper_host_key(NULL, p_pattern) END
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

-- 128 bits and more of the server's strong random numbers.
CREATE FUNCTION slotkeeper_random() RETURNS text
LANGUAGE sql VOLATILE AS $$ SELECT replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '') $$;

CREATE FUNCTION slotkeeper_next_tag(p_tag text) RETURNS text
LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(substring(p_tag FROM '^\d{1,18}')::bigint, 0) + 1 || '.' || left(slotkeeper_random(), 16)
$$;

-- The name, if it belongs to the host. Only such a name selects limits of the configuration.
CREATE FUNCTION slotkeeper_own_name(p_host text, p_name text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN p_host = slotkeeper_name_key(p_name) THEN p_name END $$;

-- Returns the locked host, and creates it if it does not exist. last_now becomes the time of the call. p_slots comes
-- from the first direct caller; the service replaces it.
CREATE FUNCTION slotkeeper_open(p_host text, p_hostname text, p_slots double precision) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host;
BEGIN
  LOOP
    h := slotkeeper_find(p_host);
    IF h.host IS NOT NULL THEN RETURN h; END IF;
    h := slotkeeper_unknown_host(p_host);
    h.last_now := greatest(slotkeeper_now(), h.last_now);
    -- Head of records.ts.
    PERFORM slotkeeper_commit_direct(h, jsonb_build_object('hostname', slotkeeper_own_name(p_host, p_hostname), 'slots', p_slots,
      'fence', greatest(h.fence, floor(h.last_now * 1000)::bigint), 'progress', 0, 'meterAt', h.last_now, 'avgWaitMs', 0,
      'breaker', slotkeeper_closed_breaker(), 'forgottenAt', slotkeeper_start_forgotten(h.last_now)));
  END LOOP;
END $$;

-- Returns the locked host. NULL: the host is unknown.
CREATE FUNCTION slotkeeper_find(p_host text) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host;
BEGIN
  SELECT * INTO h FROM slotkeeper_host WHERE host = p_host FOR NO KEY UPDATE;
  IF FOUND THEN h.last_now := greatest(slotkeeper_now(), h.last_now); END IF;
  RETURN h;
END $$;

-- LimitsRecord; NULL for a host that no instance of the service has used.
CREATE FUNCTION slotkeeper_limits(p_host text) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT data::jsonb FROM slotkeeper_record WHERE host = p_host AND kind = 'limits' AND key = '');
END $$;

-- Commits a change set of a direct caller. It ignores reservations. h: the current row, locked if it exists. p_head: the
-- fields of the head that change. p_puts: records of records.ts. p_dels: [kind, key] of each deleted record. p_most: how
-- many slots may be occupied. Returns whether it was accepted; only a first commit can fail.
CREATE FUNCTION slotkeeper_commit_direct(
  h slotkeeper_host, p_head jsonb, p_puts jsonb DEFAULT '[]', p_dels jsonb DEFAULT '[]', p_most double precision DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  -- A grant frees no slot, so no instance needs to know of it immediately.
  v_wake text[] := CASE WHEN (p_head ->> 'fence')::bigint > h.fence THEN '{}' ELSE
    ARRAY(SELECT DISTINCT data ->> 'instance' FROM slotkeeper_record WHERE host = h.host AND kind = 'waiter') END;
  v_head jsonb := jsonb_strip_nulls(coalesce(h.head::jsonb, '{}') || p_head || jsonb_build_object('now', h.last_now));
  v_tag text := slotkeeper_next_tag(h.tag);
  v_reply json;
BEGIN
  IF v_head ->> 'slots' = 'Infinity' THEN v_head := v_head - 'slots'; END IF;
  v_reply := slotkeeper_commit(slotkeeper_schema_number(), h.host, h.reserved_for, h.tag, v_tag, h.last_now, 0, v_head::json,
    (v_head -> 'slots')::double precision, (v_head -> 'fence')::bigint, 0,
    ARRAY(
      SELECT unnest(ARRAY[p ->> 'kind', p ->> 'key', (p - 'kind' - 'key')::text]) FROM jsonb_array_elements(p_puts) p
      WHERE p ->> 'kind' <> 'lease'
      UNION ALL SELECT unnest(ARRAY[d ->> 0, d ->> 1, NULL]) FROM jsonb_array_elements(p_dels) d WHERE d ->> 0 <> 'lease'),
    ARRAY(
      SELECT unnest(ARRAY[p ->> 'key', p ->> 'session', p ->> 'bucket', p ->> 'instance', p ->> 'charge'])
      FROM jsonb_array_elements(p_puts) p WHERE p ->> 'kind' = 'lease'),
    ARRAY(
      SELECT unnest(ARRAY[(p -> 'fence')::double precision, (p -> 'grantedAt')::double precision, (p -> 'endsAt')::double precision,
        (p -> 'keepUntil')::double precision, (p -> 'isReleased')::boolean::integer, (p -> 'isProbe')::boolean::integer,
        (p -> 'width')::double precision])
      FROM jsonb_array_elements(p_puts) p WHERE p ->> 'kind' = 'lease'),
    ARRAY(SELECT d ->> 1 FROM jsonb_array_elements(p_dels) d WHERE d ->> 0 = 'lease'),
    ARRAY(
      SELECT p ->> 'kind' || ' ' || (p ->> 'key') FROM jsonb_array_elements(p_puts) p
      UNION ALL SELECT d ->> 0 || ' ' || (d ->> 1) FROM jsonb_array_elements(p_dels) d),
    v_wake, jsonb_build_object('host', h.host, 'base', h.tag, 'tag', v_tag,
      'changes', jsonb_build_object('head', v_head, 'puts', p_puts, 'dels', p_dels))::text, p_most);
  -- If an instance waits for its reserved commit, the reservation stays. Otherwise the service gets priority for a
  -- moment.
  IF v_wake <> '{}' OR h.reserved_until > h.last_now THEN
    UPDATE slotkeeper_host SET reserved_for = CASE WHEN h.reserved_until > h.last_now THEN h.reserved_for ELSE '' END,
      reserved_until = CASE WHEN v_wake <> '{}' THEN h.last_now + 50 ELSE h.reserved_until END
    WHERE host = h.host;
  END IF;
  RETURN (v_reply ->> 'isOk')::boolean;
END $$;

-- Whether a lease has ended: its time has passed, or it belongs to a direct caller and locked_at is older than its
-- lease and than p_timeout_ms. The original used locked_at, and operators set it back by hand to free a slot.
CREATE FUNCTION slotkeeper_is_over(s upstream_slot_pool, p_now double precision, p_timeout_ms double precision) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT s.ends_at <= p_now OR (s.instance = '' AND NOT s.is_released
    AND extract(epoch FROM s.locked_at) * 1000 + greatest(p_timeout_ms, s.ends_at - s.granted_at) <= p_now)
$$;

CREATE FUNCTION slotkeeper_released_session(s upstream_slot_pool, p_now double precision) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('kind', 'ending', 'key', s.session, 'end', 'released', 'keepUntil', s.keep_until, 'endedAt', p_now)
$$;

-- The slots of a host as an attempt finds them: leases that have ended, and the number of slots that the others occupy.
CREATE TYPE slotkeeper_view AS (dels jsonb, puts jsonb, occupied bigint, of_bucket bigint, probes bigint);
CREATE FUNCTION slotkeeper_look(h slotkeeper_host, p_bucket text, p_timeout_ms double precision) RETURNS slotkeeper_view
LANGUAGE plpgsql AS $$
DECLARE
  v slotkeeper_view;
BEGIN
  SELECT coalesce(jsonb_agg(jsonb_build_array('lease', s.token)) FILTER (WHERE o.is_over), '[]'),
    coalesce(jsonb_agg(slotkeeper_released_session(s, h.last_now)) FILTER (WHERE o.is_over AND s.instance <> ''), '[]'),
    coalesce(sum(s.width) FILTER (WHERE NOT o.is_over), 0),
    coalesce(sum(s.width) FILTER (WHERE NOT o.is_over AND s.ip_hash = p_bucket), 0),
    count(*) FILTER (WHERE NOT o.is_over AND s.is_probe)
  INTO v.dels, v.puts, v.occupied, v.of_bucket, v.probes
  FROM upstream_slot_pool s, LATERAL (SELECT slotkeeper_is_over(s, h.last_now, p_timeout_ms) AS is_over) o
  WHERE s.hostname_pattern = h.host AND s.status = 'locked';
  SELECT v.occupied + coalesce(sum((r.data ->> 'width')::integer), 0),
    v.of_bucket + coalesce(sum((r.data ->> 'width')::integer) FILTER (WHERE r.data ->> 'bucket' = p_bucket), 0),
    v.probes + count(*) FILTER (WHERE (r.data ->> 'isProbe')::boolean)
  INTO v.occupied, v.of_bucket, v.probes
  FROM slotkeeper_record r WHERE r.host = h.host AND r.kind = 'offer' AND (r.data ->> 'lapsesAt')::double precision > h.last_now;
  RETURN v;
END $$;

CREATE TYPE slotkeeper_depths AS (host integer, bucket integer);
-- The number of waiters: sessions of the service with a place in the pool, and waiters that direct callers registered.
CREATE FUNCTION slotkeeper_depths(p_host text, p_bucket text, p_now double precision) RETURNS slotkeeper_depths
LANGUAGE plpgsql AS $$
DECLARE
  d slotkeeper_depths;
BEGIN
  SELECT count(*), count(*) FILTER (WHERE w.bucket = p_bucket) INTO d.host, d.bucket FROM (
    SELECT data ->> 'bucket' AS bucket FROM slotkeeper_record
    WHERE host = p_host AND kind = 'waiter' AND (data ->> 'isInside')::boolean
    UNION ALL
    SELECT q.ip_hash FROM upstream_ip_queue_depth q, unnest(q.expiries) e
    WHERE q.hostname_pattern = p_host AND q.expires_at > p_now AND e > p_now) w;
  RETURN d;
END $$;

-- The breaker from the table. NULL if it opened an hour ago: then it counts as closed.
CREATE FUNCTION slotkeeper_breaker(p_host text, p_now double precision) RETURNS "THROTTLE_PROTECTION"
LANGUAGE plpgsql AS $$
DECLARE
  b "THROTTLE_PROTECTION";
BEGIN
  SELECT * INTO b FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = p_host AND (opened_at > p_now - 3600000) IS NOT FALSE;
  RETURN b;
END $$;

-- How long an open breaker is open for a caller, in milliseconds: at most the hour after which it counts as closed.
CREATE FUNCTION slotkeeper_open_ms(p_seconds integer) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$ SELECT least(greatest(coalesce(p_seconds, 60), 0), 3600) * 1000.0 $$;

-- Until when the cooldown of a bucket lasts, for a caller with this cooldown.
CREATE FUNCTION slotkeeper_cools_until(p_host text, p_bucket text, p_cooldown_ms double precision) RETURNS double precision
LANGUAGE plpgsql AS $$
BEGIN
  IF p_bucket = '' THEN RETURN 0; END IF;
  RETURN coalesce((
    -- Without a cooldown a release at this very moment must not count: as a timestamp it may be rounded up.
    SELECT greatest(cool_until, CASE WHEN p_cooldown_ms > 0 THEN extract(epoch FROM last_release_at) * 1000 + p_cooldown_ms END)
    FROM upstream_ip_cooldown WHERE hostname_pattern = p_host AND ip_hash = p_bucket
  ), 0);
END $$;

-- Gives the row of func_try_acquire_slot a new id, so that a caller with an old id cannot free the slot of another
-- caller. The id comes from the upper half of the numbers, which the sequence does not reach.
CREATE FUNCTION slotkeeper_renumber(p_id integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_id integer;
BEGIN
  LOOP
    v_id := 1073741824 + floor(random() * 1073741823)::integer;
    EXIT WHEN NOT EXISTS (SELECT FROM upstream_slot_pool WHERE id = v_id);
  END LOOP;
  UPDATE upstream_slot_pool SET id = v_id WHERE id = p_id;
  RETURN v_id;
END $$;

CREATE TYPE slotkeeper_try AS (
  host text, hostname text, bucket text, slots double precision, slots_per_bucket double precision, lease_ms double precision,
  cooldown_ms double precision, open_ms double precision, by_id boolean
);
CREATE TYPE slotkeeper_answer AS (
  status text, slot_id integer, token text, depths slotkeeper_depths, code integer, retry_in_ms double precision
);

-- One attempt to get a slot. t.open_ms NULL: the caller has no window of its own.
CREATE FUNCTION slotkeeper_try_direct(t slotkeeper_try) RETURNS slotkeeper_answer
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := slotkeeper_open(t.host, t.hostname, t.slots);
  v_limits jsonb := slotkeeper_limits(t.host);
  a slotkeeper_answer;
  b "THROTTLE_PROTECTION";
  v slotkeeper_view := slotkeeper_look(h, t.bucket, t.lease_ms);
  v_capacity double precision := h.head ->> 'capacity';
BEGIN
  -- Budgets and keys in shadow mode hold back no caller, and do not count direct callers. As isEnforced of the protocol.
  IF v_limits @? '$.policy.keys[*] ? (!exists(@.isShadow) && (exists(@.slots) || exists(@.isRequired) || exists(@."for".*.slots)))'
      OR v_limits @? '$.policy.keys[*].budgets.* ? (!exists(@.isShadow))'
      OR v_limits @? '$.policy.keys[*]."for".*.budgets.* ? (!exists(@.isShadow))'
      OR v_limits @? '$.policy.classes'
      OR EXISTS (SELECT FROM jsonb_each(v_limits #> '{policy,budgets}') WHERE NOT value ? 'isShadow') THEN
    RAISE EXCEPTION 'Host % has budgets, keys or classes, which only the service knows: acquire its slots over HTTP', h.host
      USING ERRCODE = 'feature_not_supported';
  END IF;
  t.slots := coalesce(v_capacity, (v_limits #>> '{live,slots}')::double precision, t.slots);
  t.slots_per_bucket := CASE WHEN t.bucket = '' OR v_capacity IS NOT NULL THEN 'Infinity'
    ELSE coalesce((v_limits #>> '{live,slotsPerBucket}')::double precision, t.slots_per_bucket) END;
  t.open_ms := coalesce(t.open_ms, (v_limits #>> '{policy,breaker,openMs}')::double precision, 60000);
  b := slotkeeper_breaker(h.host, h.last_now);
  a.depths := slotkeeper_depths(h.host, t.bucket, h.last_now);
  IF h.last_now - b.opened_at < t.open_ms THEN
    a.status := 'THROTTLED';
    a.code := coalesce(b."LAST_ERROR_CODE", 0);
    a.retry_in_ms := t.open_ms - (h.last_now - b.opened_at);
  ELSIF v.of_bucket >= t.slots_per_bucket OR slotkeeper_cools_until(h.host, t.bucket, t.cooldown_ms) > h.last_now THEN
    a.status := 'IP_TOO_MANY';
  ELSIF v.occupied >= t.slots OR h.reserved_until > h.last_now OR h.head ->> 'first' IS NOT NULL
      OR v_limits #> '{live,isPaused}' IS NOT NULL OR (b.opened_at IS NOT NULL
      AND v.probes >= coalesce((v_limits #>> '{policy,breaker,halfOpenProbes}')::double precision, 1)) THEN
    a.status := 'QUEUE_FULL';
  ELSE
    a.status := 'ACQUIRED';
    a.token := slotkeeper_grant_direct(h, t, v, b.opened_at IS NOT NULL, v_limits IS NULL AND v_capacity IS NULL);
    IF t.by_id THEN
      a.slot_id := slotkeeper_renumber((SELECT id FROM upstream_slot_pool WHERE hostname_pattern = h.host AND token = a.token));
    END IF;
  END IF;
  RETURN a;
END $$;

-- Grants a slot to a direct caller. The same change set removes leases that have ended. As in grantLease of
-- packages/queue, the fence is at least the time in microseconds, so a failover cannot repeat it. Returns the token.
CREATE FUNCTION slotkeeper_grant_direct(
  h slotkeeper_host, t slotkeeper_try, v slotkeeper_view, p_is_probe boolean, p_sets_slots boolean
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  v_token text := 'slot_' || h.host || '.' || slotkeeper_random();
  v_fence bigint := greatest(h.fence + 1, floor(h.last_now * 1000)::bigint);
BEGIN
  -- If no instance has set limits, the slots of the latest direct caller are shown.
  PERFORM slotkeeper_commit_direct(h, jsonb_build_object('fence', v_fence, 'slots', CASE WHEN p_sets_slots THEN t.slots ELSE h.slots END),
    v.puts || jsonb_build_object('kind', 'lease', 'key', v_token, 'fence', v_fence,
      'session', CASE WHEN t.by_id THEN 'direct-id:' ELSE 'direct:' END || v_fence, 'bucket', t.bucket, 'instance', '',
      'grantedAt', h.last_now, 'endsAt', h.last_now + t.lease_ms, 'isReleased', false, 'isProbe', p_is_probe,
      'keepUntil', h.last_now, 'width', 1),
    v.dels, t.slots);
  RETURN v_token;
END $$;

-- Releases a slot of a locked host, as releaseLease of packages/queue does, but without a minimum hold, because the
-- caller does not send when it used the slot. The release is recorded for direct callers with their own cooldown.
CREATE FUNCTION slotkeeper_release_direct(h slotkeeper_host, s upstream_slot_pool, p_cools boolean) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_policy jsonb := slotkeeper_limits(h.host) -> 'policy';
  v_cooldown_ms double precision := CASE WHEN p_cools AND s.ip_hash <> '' THEN v_policy ->> 'cooldownMs' END;
  v_smooth_ms double precision := nullif(v_policy ->> 'smoothMs', '0');
  v_last_end_at double precision := h.head ->> 'lastEndAt';
  v_ends_at double precision := least(greatest(h.last_now, v_last_end_at + v_smooth_ms),
    h.last_now + (v_policy ->> 'leaseMs')::double precision);
  v_puts jsonb := '[]';
  v_dels jsonb := '[]';
BEGIN
  IF v_ends_at > h.last_now THEN
    v_puts := jsonb_build_array(slotkeeper_lease(s)::jsonb || jsonb_build_object('kind', 'lease', 'key', s.token, 'endsAt', v_ends_at, 'isReleased', true));
  ELSE
    v_dels := jsonb_build_array(jsonb_build_array('lease', s.token));
    IF s.instance <> '' THEN v_puts := jsonb_build_array(slotkeeper_released_session(s, h.last_now)); END IF;
  END IF;
  IF v_cooldown_ms > 0 THEN
    v_puts := v_puts || jsonb_build_object('kind', 'cooldown', 'key', s.ip_hash, 'until', greatest(v_ends_at + v_cooldown_ms,
      (SELECT cool_until FROM upstream_ip_cooldown WHERE hostname_pattern = h.host AND ip_hash = s.ip_hash)));
  END IF;
  PERFORM slotkeeper_commit_direct(h, CASE WHEN v_smooth_ms > 0 THEN jsonb_build_object('lastEndAt', greatest(v_last_end_at, v_ends_at))
    ELSE '{}' END, v_puts, v_dels);
  IF p_cools AND s.ip_hash <> '' THEN
    INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at, is_direct)
    VALUES (h.host, s.ip_hash, to_timestamp(h.last_now / 1000), true)
    ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET is_direct = true,
      last_release_at = greatest(c.last_release_at, excluded.last_release_at);
  END IF;
END $$;

-- Adds a waiter, and removes waiters that have expired. Returns the number of waiters.
CREATE FUNCTION slotkeeper_count_waiter(h slotkeeper_host, p_bucket text, p_lasts_ms double precision, p_hostname text)
RETURNS slotkeeper_depths
LANGUAGE plpgsql AS $$
DECLARE
  v_ends_at double precision := h.last_now + p_lasts_ms;
BEGIN
  INSERT INTO upstream_ip_queue_depth AS d (hostname_pattern, ip_hash, waiting_count, updated_at, expires_at, expiries, hostname)
  VALUES (h.host, p_bucket, 1, to_timestamp(h.last_now / 1000), v_ends_at, ARRAY[v_ends_at],
    CASE WHEN h.host <> slotkeeper_name_key(p_hostname) THEN p_hostname END)
  ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET
    expiries = ARRAY(SELECT e FROM unnest(d.expiries || v_ends_at) e WHERE e > h.last_now ORDER BY e),
    waiting_count = 1 + (SELECT count(*) FROM unnest(d.expiries) e WHERE e > h.last_now),
    expires_at = greatest(d.expires_at, v_ends_at),
    updated_at = excluded.updated_at;
  RETURN slotkeeper_depths(h.host, p_bucket, h.last_now);
END $$;

-- The thresholds of one report.
CREATE TYPE slotkeeper_thresholds AS (
  open_ms double precision, window_ms double precision, ratio_percent double precision, min_samples integer,
  fast_ratio_percent double precision, fast_min_samples integer, consecutive integer
);

-- The breaker after an answer of the upstream: BreakerState of records.ts. The table of states is in breaker.ts of
-- packages/queue. Here the thresholds come from the caller, and the caller decides what is a success or an error. NULL:
-- nothing changes.
CREATE FUNCTION slotkeeper_report_direct(
  b "THROTTLE_PROTECTION", p_is_error boolean, p_code integer, t slotkeeper_thresholds, p_now double precision
) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_opened jsonb := slotkeeper_closed_breaker() || jsonb_build_object('openedAt', p_now, 'code', p_code);
  v_in_window boolean := coalesce(p_now - b.window_start_at <= t.window_ms, false);
  v_errors integer := CASE WHEN v_in_window THEN b."OBS_ERROR_COUNT" ELSE 0 END + p_is_error::integer;
  v_total integer := CASE WHEN v_in_window THEN b."OBS_ERROR_COUNT" + b."OBS_SUCCESS_COUNT" ELSE 0 END + 1;
  v_row integer := CASE WHEN NOT p_is_error THEN 0 WHEN v_in_window THEN b."CONSECUTIVE_ERROR_COUNT" + 1 ELSE 1 END;
  v_percent double precision := 100.0 * v_errors / v_total;
BEGIN
  IF b.opened_at IS NOT NULL THEN
    -- Late answers to old requests do not affect an open breaker.
    IF p_now - b.opened_at < t.open_ms THEN RETURN NULL; END IF;
    RETURN CASE WHEN p_is_error THEN v_opened ELSE slotkeeper_closed_breaker() END;
  END IF;
  IF p_is_error AND ((t.consecutive > 0 AND v_row >= t.consecutive)
      OR (t.min_samples > 0 AND v_total >= t.min_samples AND v_percent >= t.ratio_percent)
      OR (t.fast_min_samples > 0 AND v_total >= t.fast_min_samples AND v_percent >= t.fast_ratio_percent)) THEN
    RETURN v_opened;
  END IF;
  RETURN jsonb_build_object('code', CASE WHEN p_is_error THEN p_code ELSE coalesce(b."LAST_ERROR_CODE", 0) END,
    'windowStartAt', CASE WHEN v_in_window THEN b.window_start_at ELSE p_now END,
    'errors', v_errors, 'successes', v_total - v_errors, 'consecutive', v_row);
END $$;

REVOKE ALL ON FUNCTION slotkeeper_plain_name, slotkeeper_sha256, slotkeeper_checked, slotkeeper_name_key, slotkeeper_host_key, slotkeeper_pattern_key,
  slotkeeper_refuse_table, slotkeeper_required, slotkeeper_or_unlimited, slotkeeper_random, slotkeeper_next_tag,
  slotkeeper_own_name, slotkeeper_open, slotkeeper_find, slotkeeper_limits, slotkeeper_commit_direct, slotkeeper_is_over,
  slotkeeper_released_session, slotkeeper_look, slotkeeper_depths, slotkeeper_breaker, slotkeeper_open_ms, slotkeeper_cools_until,
  slotkeeper_renumber, slotkeeper_try_direct, slotkeeper_grant_direct, slotkeeper_release_direct, slotkeeper_count_waiter,
  slotkeeper_report_direct FROM PUBLIC;
REVOKE ALL ON TYPE slotkeeper_view, slotkeeper_depths, slotkeeper_try, slotkeeper_answer, slotkeeper_thresholds FROM PUBLIC;
