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

-- Sends a notice of a commit to instances. One that does not fit into a notification only names the host, and the
-- instance reads it.
CREATE FUNCTION slotkeeper_notify(p_instances text[], p_host text, p_notice text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(slotkeeper_channel_of(i), CASE WHEN octet_length(p_notice) <= 7900 THEN p_notice ELSE json_build_object('host', p_host)::text END)
  FROM unnest(p_instances) i;
END $$;

-- The numbers of p_count slot rows without a lease: of the host, otherwise of forgotten hosts, which move to this one,
-- otherwise new ones. Creating a row uses up an id, so there must be room for the leases: p_most slots.
CREATE FUNCTION slotkeeper_free_slots(
  p_host text, p_count integer, p_now double precision, p_most double precision, p_offers_until double precision
) RETURNS integer[]
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
  IF cardinality(v_free) < p_count THEN
    PERFORM slotkeeper_check_room(p_host, p_count - cardinality(v_free), p_now, p_most, p_offers_until);
  END IF;
  -- The sequence starts again at its end, where a database of the original may have rows: then the next id is tried.
  WHILE cardinality(v_free) < p_count LOOP
    INSERT INTO upstream_slot_pool (hostname_pattern, slot_index) SELECT p_host, slotkeeper_last_slot(p_host) + 1
    ON CONFLICT DO NOTHING RETURNING slot_index INTO v_number;
    IF FOUND THEN v_free := v_free || v_number; END IF;
  END LOOP;
  RETURN v_free;
END $$;

-- The highest number of a slot row of the host; 0: it has none.
CREATE FUNCTION slotkeeper_last_slot(p_host text) RETURNS integer
LANGUAGE sql STABLE AS $$ SELECT coalesce(max(slot_index), 0) FROM upstream_slot_pool WHERE hostname_pattern = p_host $$;

-- Writes leases: one that exists into its own row, a new one into the row of a lease that ends with the same commit,
-- otherwise into a free row. Then frees the rows of the other leases that end. p_leases, p_numbers and p_ended are those
-- of slotkeeper_commit. p_fence: the highest fence before this commit; a lease above it is new (P3). Returns whether a
-- lease is new. Leases are written by one statement, because preparing it takes longer than writing a row.
CREATE FUNCTION slotkeeper_write_leases(
  p_host text, p_fence bigint, p_now double precision, p_most double precision, p_offers_until double precision, p_leases text[],
  p_numbers double precision[], p_ended text[]
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_count integer := cardinality(p_leases) / 5;
  v_old integer := 0;
  v_reused integer := cardinality(p_ended);
  v_free integer[] := '{}';
  v_written integer;
BEGIN
  WHILE p_numbers[v_old * 7 + 1] <= p_fence LOOP v_old := v_old + 1; END LOOP;
  IF v_count - v_old > v_reused THEN
    v_free := slotkeeper_free_slots(p_host, v_count - v_old - v_reused, p_now, p_most, p_offers_until);
  END IF;
  IF v_count > 0 THEN
    -- Each row is found by the token that it has, or by its number.
    UPDATE upstream_slot_pool SET status = 'locked', token = p_leases[i * 5 + 1], session = p_leases[i * 5 + 2],
      ip_hash = p_leases[i * 5 + 3], instance = p_leases[i * 5 + 4], charge = p_leases[i * 5 + 5]::json, fence = p_numbers[i * 7 + 1]::bigint,
      locked_at = to_timestamp(p_numbers[i * 7 + 2] / 1000), granted_at = p_numbers[i * 7 + 2], ends_at = p_numbers[i * 7 + 3],
      keep_until = p_numbers[i * 7 + 4], is_released = p_numbers[i * 7 + 5] = 1, is_probe = p_numbers[i * 7 + 6] = 1,
      width = p_numbers[i * 7 + 7]
    FROM generate_series(0, v_count - 1) i
    WHERE hostname_pattern = p_host AND (token = CASE WHEN i < v_old THEN p_leases[i * 5 + 1] ELSE p_ended[i - v_old + 1] END
      OR slot_index = v_free[i - v_old - v_reused + 1]);
    GET DIAGNOSTICS v_written = ROW_COUNT;
    IF v_written < v_count THEN
      RAISE EXCEPTION 'A lease of host % has no row: it or its predecessor has ended, or its fence is not above %', p_host, p_fence
        USING ERRCODE = 'SK002';
    END IF;
  END IF;
  IF v_reused > v_count - v_old THEN
    UPDATE upstream_slot_pool SET status = 'available', ip_hash = NULL, locked_at = NULL, token = NULL, ends_at = NULL
    WHERE hostname_pattern = p_host AND token = ANY (p_ended);
  END IF;
  RETURN v_count > v_old;
END $$;

-- Refuses leases that need new rows if there would be more than p_most slots: creating a row uses up an id. Every row has
-- a lease. A new lease counts as one slot here; its width is counted when it is written.
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

-- Copies the head's breaker to the table that people and direct callers read.
CREATE FUNCTION slotkeeper_copy_breaker(p_host text, p_head json) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  b json := p_head -> 'breaker';
  v_hostname text := p_head ->> 'hostname';
  v_opened_at double precision := b ->> 'openedAt';
  v_window_start_at double precision := b ->> 'windowStartAt';
BEGIN
  INSERT INTO "THROTTLE_PROTECTION" AS t ("HOSTNAME_HASH", "HOSTNAME", "ERROR_TIMESTAMP", "IS_PROTECTED",
    "LAST_ERROR_CODE", "OBS_WINDOW_START", "OBS_ERROR_COUNT", "OBS_SUCCESS_COUNT", "CONSECUTIVE_ERROR_COUNT",
    opened_at, window_start_at)
  VALUES (p_host, coalesce(v_hostname, p_host), floor(v_opened_at / 1000), (v_opened_at IS NOT NULL)::integer,
    nullif((b ->> 'code')::integer, 0), floor(v_window_start_at / 1000), (b ->> 'errors')::integer, (b ->> 'successes')::integer,
    (b ->> 'consecutive')::integer, v_opened_at, v_window_start_at)
  ON CONFLICT ("HOSTNAME_HASH") DO UPDATE SET
    "HOSTNAME" = coalesce(v_hostname, t."HOSTNAME"),
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

-- The slots of offers that have not lapsed.
CREATE FUNCTION slotkeeper_offers(p_host text, p_now double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (
    SELECT coalesce(sum((data ->> 'width')::integer), 0) FROM slotkeeper_record
    WHERE host = p_host AND kind = 'offer' AND (data ->> 'lapsesAt')::double precision > p_now);
END $$;

-- The number of slots that are occupied at p_now: the widths of live leases, and of offers that have not lapsed. p_offers_until: the
-- latest time at which an offer lapses. PL/pgSQL, because a function in SQL that is not inlined has a set-up cost for
-- every call.
CREATE FUNCTION slotkeeper_occupied(p_host text, p_now double precision, p_offers_until double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT coalesce(sum(width), 0) FROM upstream_slot_pool WHERE hostname_pattern = p_host AND ends_at > p_now)
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
  DELETE FROM upstream_ip_cooldown c USING generate_series(1, cardinality(p_records), 3) i
  WHERE p_records[i] = 'cooldown' AND p_records[i + 2] IS NULL AND c.hostname_pattern = p_host AND c.ip_hash = p_records[i + 1]
    AND NOT c.is_direct;
  UPDATE upstream_ip_cooldown c SET cool_until = NULL FROM generate_series(1, cardinality(p_records), 3) i
  WHERE p_records[i] = 'cooldown' AND p_records[i + 2] IS NULL AND c.hostname_pattern = p_host AND c.ip_hash = p_records[i + 1];
  INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at, cool_until)
  SELECT p_host, p_records[i + 1], to_timestamp(p_now / 1000), (p_records[i + 2]::json ->> 'until')::double precision
  FROM generate_series(1, cardinality(p_records), 3) i WHERE p_records[i] = 'cooldown' AND p_records[i + 2] IS NOT NULL
  ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET cool_until = excluded.cool_until,
    last_release_at = greatest(c.last_release_at, excluded.last_release_at);
END $$;

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
  h.fence := slotkeeper_floor();
  h.last_now := slotkeeper_first_now(h.fence, slotkeeper_now());
  h.reserved_until := 0;
  RETURN h;
END $$;

-- Forgets a locked host and everything that belongs to it. Its slot rows stay for the next host.
CREATE FUNCTION slotkeeper_forget(h slotkeeper_host) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM slotkeeper_record WHERE host = h.host;
  DELETE FROM slotkeeper_ring WHERE host = h.host;
  DELETE FROM upstream_ip_cooldown WHERE hostname_pattern = h.host AND NOT is_direct;
  UPDATE upstream_ip_cooldown SET cool_until = NULL WHERE hostname_pattern = h.host AND cool_until IS NOT NULL;
  DELETE FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = h.host;
  UPDATE upstream_slot_pool SET hostname_pattern = '', slot_index = id, status = 'available', ip_hash = NULL, locked_at = NULL,
    token = NULL, ends_at = NULL
  WHERE hostname_pattern = h.host;
  INSERT INTO slotkeeper_floor VALUES (h.fence);
  DELETE FROM slotkeeper_host WHERE host = h.host;
END $$;

-- LeaseRecord of records.ts, without its kind and key.
CREATE FUNCTION slotkeeper_lease(s upstream_slot_pool) RETURNS json
LANGUAGE sql STABLE AS $$
  SELECT json_build_object('fence', s.fence, 'session', s.session, 'bucket', s.ip_hash, 'instance', s.instance,
    'grantedAt', s.granted_at, 'endsAt', s.ends_at, 'isReleased', s.is_released, 'isProbe', s.is_probe, 'keepUntil', s.keep_until, 'width', s.width,
    'charge', s.charge)
$$;

-- BookImage of records.ts, with each record as a row: [kind, key, its other fields].
CREATE FUNCTION slotkeeper_book(h slotkeeper_host) RETURNS json
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN '{"head":' || h.head::text || ',"records":[' || concat_ws(',',
    (SELECT string_agg(json_build_array('lease', s.token, slotkeeper_lease(s))::text, ',' ORDER BY s.fence) FROM upstream_slot_pool s
     WHERE s.hostname_pattern = h.host AND s.status = 'locked'),
    (SELECT string_agg(json_build_array('cooldown', c.ip_hash, json_build_object('until', c.cool_until))::text, ',')
     FROM upstream_ip_cooldown c WHERE c.hostname_pattern = h.host AND c.cool_until IS NOT NULL),
    (SELECT string_agg(json_build_array(r.kind, r.key, r.data)::text, ',') FROM slotkeeper_record r WHERE r.host = h.host)
  ) || ']}';
END $$;

-- The number of a commit.
CREATE FUNCTION slotkeeper_number(p_tag text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$ SELECT split_part(p_tag, '.', 1)::bigint $$;

-- Changes of records.ts, with each record as a row: what has changed since p_since. NULL: the ring does not have it.
CREATE FUNCTION slotkeeper_changes(h slotkeeper_host, p_since text) RETURNS text
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_since bigint := slotkeeper_number(p_since);
  v_count bigint := slotkeeper_number(h.tag) - v_since;
  v_names text[];
  v_is_known boolean;
  v_leases text;
  v_held text[];
  v_records text;
  v_gone text;
BEGIN
  IF (p_since = h.tag OR v_count BETWEEN 1 AND 64) IS NOT TRUE THEN RETURN NULL; END IF;
  IF v_count > 0 THEN
    SELECT array_agg(DISTINCT n.name) FILTER (WHERE n.name IS NOT NULL), count(DISTINCT i) = v_count AND bool_or(r.base = p_since)
    INTO v_names, v_is_known
    FROM generate_series(v_since + 1, v_since + v_count) i
    JOIN slotkeeper_ring r ON r.host = h.host AND r.place = i % 64 AND slotkeeper_number(r.tag) = i
    LEFT JOIN LATERAL unnest(r.names) n (name) ON true;
    IF v_is_known IS NOT TRUE THEN RETURN NULL; END IF;
    SELECT string_agg(json_build_array('lease', s.token, slotkeeper_lease(s))::text, ','), array_agg('lease ' || s.token)
    INTO v_leases, v_held
    FROM upstream_slot_pool s WHERE s.hostname_pattern = h.host AND 'lease ' || s.token = ANY (v_names);
    SELECT string_agg(json_build_array(n.kind, n.key, f.data)::text, ',') FILTER (WHERE f.data IS NOT NULL),
      string_agg(json_build_array(n.kind, n.key)::text, ',') FILTER (WHERE f.data IS NULL)
    INTO v_records, v_gone
    FROM (
      SELECT split_part(u.name, ' ', 1) AS kind, substr(u.name, strpos(u.name, ' ') + 1) AS key FROM unnest(v_names) u (name)
      WHERE (u.name = ANY (v_held)) IS NOT TRUE) n
    LEFT JOIN slotkeeper_record r ON r.host = h.host AND r.kind = n.kind AND r.key = n.key
    LEFT JOIN upstream_ip_cooldown c ON n.kind = 'cooldown' AND c.hostname_pattern = h.host AND c.ip_hash = n.key
    CROSS JOIN LATERAL (SELECT CASE WHEN c.cool_until IS NULL THEN r.data ELSE json_build_object('until', c.cool_until) END AS data) f;
  END IF;
  RETURN '{"head":' || h.head::text || ',"puts":[' || concat_ws(',', v_leases, v_records) || '],"dels":[' || coalesce(v_gone, '') || ']}';
END $$;

-- ReadReply of the store interface: what has changed since p_since, or the whole host. h is NULL if the host does not
-- exist.
CREATE FUNCTION slotkeeper_reply(h slotkeeper_host, p_since text, p_now double precision, p_refusal text DEFAULT NULL) RETURNS json
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_changes text := slotkeeper_changes(h, p_since);
BEGIN
  RETURN '{"isOk":false' || coalesce(',"reason":"' || p_refusal || '"', '') || ',"now":' || p_now
    || coalesce(',"tag":' || to_json(h.tag)::text, '') || ',"tail":' || CASE
      WHEN v_changes IS NOT NULL THEN '{"kind":"changes","changes":' || v_changes || '}'
      WHEN h.tag IS NULL THEN '{"kind":"book"}'
      ELSE '{"kind":"book","book":' || slotkeeper_book(h)::text || '}' END || '}';
END $$;

REVOKE ALL ON FUNCTION slotkeeper_floor, slotkeeper_channel, slotkeeper_channel_of, slotkeeper_notify,
  slotkeeper_free_slots, slotkeeper_last_slot, slotkeeper_check_room, slotkeeper_write_leases,
  slotkeeper_copy_breaker, slotkeeper_closed_breaker,
  slotkeeper_offers, slotkeeper_occupied, slotkeeper_adds_offer, slotkeeper_write_cooldowns, slotkeeper_refuse_slots,
  slotkeeper_first_now, slotkeeper_unknown_host, slotkeeper_forget, slotkeeper_lease, slotkeeper_book, slotkeeper_number,
  slotkeeper_changes, slotkeeper_reply FROM PUBLIC;
