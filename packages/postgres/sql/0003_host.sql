-- The inner functions: write changes to a host that the caller has locked, and read a host.

-- The highest fence of forgotten hosts.
CREATE FUNCTION slotkeeper_floor() RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT coalesce(max(fence), 0) FROM slotkeeper_floor $$;

-- The channel on which an instance listens: at most 63 bytes for any names. This is an expression, which the planner
-- inlines. slotkeeper_channel, which the store calls, has a set-up cost for each call.
CREATE FUNCTION slotkeeper_channel_of(p_instance text) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT 'slotkeeper_' || left(encode(sha256(convert_to(current_schema() || chr(10) || p_instance, 'UTF8')), 'hex'), 40)
$$;

CREATE FUNCTION slotkeeper_channel(p_instance text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN slotkeeper_channel_of(p_instance);
END $$;

-- Sends a commit to instances. Changes that do not fit into a notification, or that the commit does not contain, are
-- left out, and the instance reads them.
CREATE FUNCTION slotkeeper_notify(p_instances text[], p_host text, p_base text, p_tag text, p_changes text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_names text := '{"host":' || to_json(p_host)::text;
  v_notice text := v_names || ',"base":' || coalesce(to_json(p_base)::text, 'null') || ',"tag":' || to_json(p_tag)::text
    || ',"changes":' || p_changes || '}';
BEGIN
  PERFORM pg_notify(slotkeeper_channel_of(i), CASE WHEN octet_length(v_notice) <= 7900 THEN v_notice ELSE v_names || '}' END)
  FROM unnest(p_instances) i;
  RETURN true;
END $$;

-- The numbers of slot rows without a lease, at most p_count: of the host, otherwise of forgotten hosts, which move to this one.
CREATE FUNCTION slotkeeper_free_slots(p_host text, p_count integer) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
  v_free integer[] := ARRAY(
    SELECT slot_index FROM upstream_slot_pool WHERE hostname_pattern = p_host AND token IS NULL ORDER BY slot_index LIMIT p_count);
  v_number integer;
BEGIN
  WHILE cardinality(v_free) < p_count LOOP
    UPDATE upstream_slot_pool SET hostname_pattern = p_host, slot_index = slotkeeper_last_slot(p_host) + 1
    WHERE id = (
      SELECT f.id FROM upstream_slot_pool f WHERE f.hostname_pattern = '' ORDER BY f.slot_index LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING slot_index INTO v_number;
    EXIT WHEN NOT FOUND;
    v_free := v_free || v_number;
  END LOOP;
  RETURN v_free;
END $$;

-- The highest number of a slot row of the host; 0: it has none.
CREATE FUNCTION slotkeeper_last_slot(p_host text) RETURNS integer
LANGUAGE sql STABLE AS $$ SELECT coalesce(max(slot_index), 0) FROM upstream_slot_pool WHERE hostname_pattern = p_host $$;

-- Adds a commit to the tail. In the tail, one character replaces the host's key, which every slot token contains: JSON has
-- no control characters of its own. Not ON CONFLICT: it locks the row first, which costs one more write-ahead record.
CREATE FUNCTION slotkeeper_add_to_tail(p_host text, p_number bigint, p_base text, p_tag text, p_changes text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_number > 64 THEN
    UPDATE slotkeeper_tail SET number = p_number, base = p_base, tag = p_tag, changes = replace(p_changes, p_host, chr(1))
    WHERE host = p_host AND place = p_number % 64;
    IF FOUND THEN RETURN; END IF;
  END IF;
  INSERT INTO slotkeeper_tail
  VALUES (p_host, p_number % 64, p_number, p_base, p_tag, replace(p_changes, p_host, chr(1)));
END $$;

CREATE FUNCTION slotkeeper_check_fence(p_host text, p_before bigint, p_fence bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_fence < p_before THEN
    RAISE EXCEPTION 'The fence of host % would fall from % to %', p_host, p_before, p_fence USING ERRCODE = 'SK002';
  END IF;
END $$;

-- Writes the leases of a change set: one that exists into its own row, a new one into the row of a lease that ends with
-- the same commit, otherwise into a free row, otherwise into a row of its own. Then frees the rows of the other leases
-- that end. p_names, p_numbers and p_ended are those of slotkeeper_commit. p_fence: the highest fence before this
-- commit; a lease above it is new (P3). Returns whether a lease is new.
-- Leases are written by one statement, because preparing it takes longer than writing a row.
CREATE FUNCTION slotkeeper_write_leases(
  p_host text, p_fence bigint, p_now double precision, p_most double precision, p_offers_until double precision, p_names text[],
  p_numbers double precision[], p_ended text[]
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_count integer := cardinality(p_names) / 4;
  v_old integer := 0;
  v_reused integer := cardinality(p_ended);
  v_free integer[] := '{}';
  v_rows integer;
  v_written integer := 0;
BEGIN
  WHILE p_numbers[v_old * 6 + 1] <= p_fence LOOP v_old := v_old + 1; END LOOP;
  IF v_count - v_old > v_reused THEN v_free := slotkeeper_free_slots(p_host, v_count - v_old - v_reused); END IF;
  -- How many leases get a row that exists.
  v_rows := least(v_count, v_old + v_reused + cardinality(v_free));
  IF v_rows > 0 THEN
    -- Each row is found by the token that it has, or by its number.
    UPDATE upstream_slot_pool SET status = 'locked', token = p_names[i * 4 + 1], session = p_names[i * 4 + 2],
      ip_hash = p_names[i * 4 + 3], instance = p_names[i * 4 + 4], fence = p_numbers[i * 6 + 1]::bigint,
      locked_at = to_timestamp(p_numbers[i * 6 + 2] / 1000), granted_at = p_numbers[i * 6 + 2], ends_at = p_numbers[i * 6 + 3],
      keep_until = p_numbers[i * 6 + 4], is_released = p_numbers[i * 6 + 5] = 1, is_probe = p_numbers[i * 6 + 6] = 1
    FROM generate_series(0, v_rows - 1) i
    WHERE hostname_pattern = p_host AND (token = CASE WHEN i < v_old THEN p_names[i * 4 + 1] ELSE p_ended[i - v_old + 1] END
      OR slot_index = v_free[i - v_old - v_reused + 1]);
    GET DIAGNOSTICS v_written = ROW_COUNT;
    IF v_written < v_rows THEN
      RAISE EXCEPTION 'A lease of host % has no row: it or its predecessor has ended, or its fence is not above %', p_host, p_fence
        USING ERRCODE = 'SK002';
    END IF;
  END IF;
  IF v_rows < v_count THEN
    PERFORM slotkeeper_check_room(p_host, v_count - v_rows, p_now, p_most, p_offers_until);
    -- The sequence starts again at its end, where a database of the original may have rows: then the next number is
    -- tried.
    WHILE v_rows < v_count LOOP
      INSERT INTO upstream_slot_pool (hostname_pattern, slot_index, status, token, session, ip_hash, instance, fence, locked_at,
        granted_at, ends_at, keep_until, is_released, is_probe)
      SELECT p_host, slotkeeper_last_slot(p_host) + 1, 'locked', p_names[v_rows * 4 + 1], p_names[v_rows * 4 + 2],
        p_names[v_rows * 4 + 3], p_names[v_rows * 4 + 4], p_numbers[v_rows * 6 + 1]::bigint,
        to_timestamp(p_numbers[v_rows * 6 + 2] / 1000), p_numbers[v_rows * 6 + 2], p_numbers[v_rows * 6 + 3],
        p_numbers[v_rows * 6 + 4], p_numbers[v_rows * 6 + 5] = 1, p_numbers[v_rows * 6 + 6] = 1
      ON CONFLICT DO NOTHING;
      IF FOUND THEN v_rows := v_rows + 1; END IF;
    END LOOP;
  END IF;
  IF v_reused > v_count - v_old THEN
    UPDATE upstream_slot_pool SET status = 'available', ip_hash = NULL, locked_at = NULL, token = NULL, fence = NULL,
      session = NULL, instance = NULL, granted_at = NULL, ends_at = NULL, is_released = false, is_probe = false, keep_until = NULL
    WHERE hostname_pattern = p_host AND token = ANY (p_ended);
  END IF;
  RETURN v_count > v_old;
END $$;

-- Refuses leases that need new rows if there would be more than p_most slots: creating a row uses up an id. Every row has a lease.
CREATE FUNCTION slotkeeper_check_room(
  p_host text, p_count integer, p_now double precision, p_most double precision, p_offers_until double precision
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_occupied bigint;
BEGIN
  IF slotkeeper_last_slot(p_host) + p_count <= p_most AND p_offers_until <= p_now THEN RETURN; END IF;
  v_occupied := slotkeeper_occupied(p_host, p_now, p_offers_until) + p_count;
  IF v_occupied > p_most THEN PERFORM slotkeeper_refuse_slots(p_host, v_occupied, p_most); END IF;
END $$;

CREATE FUNCTION slotkeeper_put_cooldown(p_host text, p_bucket text, p_until double precision, p_now double precision) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at, cool_until)
  VALUES (p_host, p_bucket, to_timestamp(p_now / 1000), p_until)
  ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET cool_until = excluded.cool_until,
    last_release_at = greatest(c.last_release_at, excluded.last_release_at);
END $$;

CREATE FUNCTION slotkeeper_del_cooldown(p_host text, p_bucket text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM upstream_ip_cooldown WHERE hostname_pattern = p_host AND ip_hash = p_bucket AND NOT is_direct;
  UPDATE upstream_ip_cooldown SET cool_until = NULL WHERE hostname_pattern = p_host AND ip_hash = p_bucket;
END $$;

-- Copies the head's breaker to the table that people and direct callers read.
CREATE FUNCTION slotkeeper_copy_breaker(p_host text, p_hostname text, b jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_opened_at double precision := b ->> 'openedAt';
  v_window_start_at double precision := b ->> 'windowStartAt';
BEGIN
  INSERT INTO "THROTTLE_PROTECTION" AS t ("HOSTNAME_HASH", "HOSTNAME", "ERROR_TIMESTAMP", "IS_PROTECTED",
    "LAST_ERROR_CODE", "OBS_WINDOW_START", "OBS_ERROR_COUNT", "OBS_SUCCESS_COUNT", "CONSECUTIVE_ERROR_COUNT",
    opened_at, window_start_at)
  VALUES (p_host, coalesce(p_hostname, p_host), floor(v_opened_at / 1000), (v_opened_at IS NOT NULL)::integer,
    nullif((b ->> 'code')::integer, 0), floor(v_window_start_at / 1000), (b ->> 'errors')::integer, (b ->> 'successes')::integer,
    (b ->> 'consecutive')::integer, v_opened_at, v_window_start_at)
  ON CONFLICT ("HOSTNAME_HASH") DO UPDATE SET
    "HOSTNAME" = coalesce(p_hostname, t."HOSTNAME"),
    "ERROR_TIMESTAMP" = coalesce(excluded."ERROR_TIMESTAMP", t."ERROR_TIMESTAMP"),
    "IS_PROTECTED" = excluded."IS_PROTECTED",
    "LAST_ERROR_CODE" = excluded."LAST_ERROR_CODE",
    "OBS_WINDOW_START" = excluded."OBS_WINDOW_START",
    "OBS_ERROR_COUNT" = excluded."OBS_ERROR_COUNT",
    "OBS_SUCCESS_COUNT" = excluded."OBS_SUCCESS_COUNT",
    "CONSECUTIVE_ERROR_COUNT" = excluded."CONSECUTIVE_ERROR_COUNT",
    opened_at = excluded.opened_at,
    window_start_at = excluded.window_start_at;
END $$;

CREATE FUNCTION slotkeeper_closed_breaker() RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$ SELECT '{"code": 0, "errors": 0, "successes": 0, "consecutive": 0}'::jsonb $$;

-- Offers that have not lapsed.
CREATE FUNCTION slotkeeper_offers(p_host text, p_now double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT count(*) FROM slotkeeper_record WHERE host = p_host AND kind = 'offer' AND (data ->> 'lapsesAt')::double precision > p_now);
END $$;

-- The number of slots that are occupied at p_now: live leases, and offers that have not lapsed. p_offers_until: the
-- latest time at which an offer lapses. PL/pgSQL, because a function in SQL that is not inlined has a set-up cost for
-- every call.
CREATE FUNCTION slotkeeper_occupied(p_host text, p_now double precision, p_offers_until double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT count(*) FROM upstream_slot_pool WHERE hostname_pattern = p_host AND ends_at > p_now)
    + CASE WHEN p_offers_until > p_now THEN slotkeeper_offers(p_host, p_now) ELSE 0 END;
END $$;

-- Refuses a commit that would break P2.
CREATE FUNCTION slotkeeper_refuse_slots(p_host text, p_occupied bigint, p_slots double precision) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'Host % would have % slots occupied, and its limit is %', p_host, p_occupied, p_slots USING ERRCODE = 'SK002';
END $$;

-- Whether a change set adds an offer, before it is written.
CREATE FUNCTION slotkeeper_adds_offer(p_host text, p_now double precision, p_records text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM generate_series(1, cardinality(p_records), 3) i
    WHERE p_records[i] = 'offer' AND (p_records[i + 2]::json ->> 'lapsesAt')::double precision > p_now AND NOT EXISTS (
      SELECT FROM slotkeeper_record r WHERE r.host = p_host AND r.kind = 'offer' AND r.key = p_records[i + 1]
        AND (r.data ->> 'lapsesAt')::double precision > p_now));
END $$;

-- Writes the cooldowns of a change set.
CREATE FUNCTION slotkeeper_write_cooldowns(p_host text, p_now double precision, p_records text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. cardinality(p_records) BY 3 LOOP
    CONTINUE WHEN p_records[i] <> 'cooldown';
    IF p_records[i + 2] IS NULL THEN PERFORM slotkeeper_del_cooldown(p_host, p_records[i + 1]);
    ELSE PERFORM slotkeeper_put_cooldown(p_host, p_records[i + 1], (p_records[i + 2]::json ->> 'until')::double precision, p_now); END IF;
  END LOOP;
END $$;

-- Head of records.ts. JSON has no Infinity: a missing `slots` means no limit.
CREATE FUNCTION slotkeeper_head(h slotkeeper_host) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_strip_nulls(jsonb_build_object('hostname', h.hostname, 'slots', nullif(h.slots, 'Infinity'), 'fence', h.fence,
    'now', h.last_now, 'progress', h.progress, 'meterAt', h.meter_at, 'lastEndAt', h.last_end_at, 'capacity', h.capacity,
    'breaker', h.breaker, 'avgWaitMs', h.avg_wait_ms, 'idleSince', h.idle_since, 'weighted', h.weighted,
    'forgottenAt', h.forgotten_at))
$$;

-- The least store time of a host that is not known. Fences start at the store time in microseconds, so it must be above
-- the fences of forgotten hosts. This is an expression, which the planner inlines.
CREATE FUNCTION slotkeeper_first_now(p_floor bigint, p_clock double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN p_floor >= p_clock * 1000 THEN ceil(p_floor / 1000.0) + 1 ELSE 0 END $$;

-- A host before its first commit, which is not in the table yet. Its tag is NULL.
CREATE FUNCTION slotkeeper_unknown_host(p_host text) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host;
BEGIN
  h.host := p_host;
  h.commits := 0;
  h.breaker := slotkeeper_closed_breaker();
  h.fence := slotkeeper_floor();
  h.last_now := slotkeeper_first_now(h.fence, slotkeeper_now());
  h.offers_until := 0;
  h.reserved_until := 0;
  RETURN h;
END $$;

-- Forgets a locked host and everything that belongs to it. Its slot rows stay for the next host.
CREATE FUNCTION slotkeeper_forget(h slotkeeper_host) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM slotkeeper_record WHERE host = h.host;
  DELETE FROM slotkeeper_tail WHERE host = h.host;
  DELETE FROM upstream_ip_cooldown WHERE hostname_pattern = h.host AND NOT is_direct;
  UPDATE upstream_ip_cooldown SET cool_until = NULL WHERE hostname_pattern = h.host AND cool_until IS NOT NULL;
  DELETE FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = h.host;
  UPDATE upstream_slot_pool SET hostname_pattern = '', slot_index = id, status = 'available', ip_hash = NULL, locked_at = NULL,
    token = NULL, fence = NULL, session = NULL, instance = NULL, granted_at = NULL, ends_at = NULL, is_released = false,
    is_probe = false, keep_until = NULL
  WHERE hostname_pattern = h.host;
  INSERT INTO slotkeeper_floor VALUES (h.fence);
  DELETE FROM slotkeeper_host WHERE host = h.host;
END $$;

-- LeaseRecord of records.ts, without its kind and key.
CREATE FUNCTION slotkeeper_lease(s upstream_slot_pool) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('fence', s.fence, 'session', s.session, 'bucket', s.ip_hash,
    'instance', s.instance, 'grantedAt', s.granted_at, 'endsAt', s.ends_at, 'isReleased', s.is_released, 'isProbe', s.is_probe,
    'keepUntil', s.keep_until)
$$;

-- BookImage of records.ts, with each record as [kind, key, its other fields].
CREATE FUNCTION slotkeeper_book(h slotkeeper_host) RETURNS json
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN '{"head":' || slotkeeper_head(h)::text || ',"records":[' || concat_ws(',',
    (SELECT string_agg(json_build_array('lease', s.token, slotkeeper_lease(s))::text, ',' ORDER BY s.fence) FROM upstream_slot_pool s
     WHERE s.hostname_pattern = h.host AND s.status = 'locked'),
    (SELECT string_agg(json_build_array('cooldown', c.ip_hash, json_build_object('until', c.cool_until))::text, ',')
     FROM upstream_ip_cooldown c WHERE c.hostname_pattern = h.host AND c.cool_until IS NOT NULL),
    (SELECT string_agg(json_build_array(r.kind, r.key, r.data)::text, ',') FROM slotkeeper_record r WHERE r.host = h.host)
  ) || ']}';
END $$;

-- ReadReply of the store interface: the commits since p_since, or the whole host. h is NULL if the host does not exist.
CREATE FUNCTION slotkeeper_reply(h slotkeeper_host, p_since text, p_now double precision, p_refusal text DEFAULT NULL) RETURNS json
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_commits text := CASE WHEN p_since = h.tag THEN '' END;
  v_tail text;
BEGIN
  IF p_since <> h.tag THEN
    -- Commits that no other instance needed are missing, or have no changes.
    SELECT replace(string_agg(t.changes, ',' ORDER BY t.number), chr(1), h.host) INTO v_commits FROM slotkeeper_tail t
    WHERE t.host = h.host AND t.number >= (SELECT f.number FROM slotkeeper_tail f WHERE f.host = h.host AND f.base = p_since)
    HAVING count(t.changes) = h.commits - min(t.number) + 1;
  END IF;
  v_tail := CASE
    WHEN v_commits IS NOT NULL THEN '{"kind":"changes","commits":[' || v_commits || ']}'
    WHEN h.tag IS NULL THEN '{"kind":"book"}'
    ELSE '{"kind":"book","book":' || slotkeeper_book(h)::text || '}' END;
  RETURN '{"isOk":false' || coalesce(',"reason":"' || p_refusal || '"', '') || ',"now":' || p_now
    || coalesce(',"tag":' || to_json(h.tag)::text, '') || ',"tail":' || v_tail || '}';
END $$;

REVOKE ALL ON FUNCTION slotkeeper_floor, slotkeeper_channel, slotkeeper_channel_of, slotkeeper_notify,
  slotkeeper_free_slots, slotkeeper_last_slot, slotkeeper_check_room, slotkeeper_add_to_tail, slotkeeper_check_fence, slotkeeper_write_leases,
  slotkeeper_put_cooldown, slotkeeper_del_cooldown, slotkeeper_copy_breaker, slotkeeper_closed_breaker,
  slotkeeper_offers, slotkeeper_occupied, slotkeeper_adds_offer, slotkeeper_write_cooldowns, slotkeeper_refuse_slots,
  slotkeeper_head, slotkeeper_first_now, slotkeeper_unknown_host, slotkeeper_forget, slotkeeper_lease, slotkeeper_book, slotkeeper_reply FROM PUBLIC;
