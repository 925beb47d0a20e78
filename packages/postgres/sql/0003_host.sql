-- The inner parts: how changes are written to a host that the caller has locked, and how a host is read.

-- The highest fence of forgotten hosts.
CREATE FUNCTION slotkeeper_floor() RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT coalesce(max(fence), 0) FROM slotkeeper_floor $$;

-- Where an instance listens: at most 63 bytes, whatever the names are. An expression, which the planner puts in the place of the
-- call: slotkeeper_channel, which the store calls, is set up for each call.
CREATE FUNCTION slotkeeper_channel_of(p_instance text) RETURNS text
LANGUAGE sql STABLE AS $$
  SELECT 'slotkeeper_' || left(encode(sha256(convert_to(current_schema() || chr(10) || p_instance, 'UTF8')), 'hex'), 40)
$$;

CREATE FUNCTION slotkeeper_channel(p_instance text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN slotkeeper_channel_of(p_instance);
END $$;

-- Sends a commit to instances. What does not fit into a notification is left out, and the instance reads it.
CREATE FUNCTION slotkeeper_notify(p_instances text[], p_host text, p_base text, p_tag text, p_changes text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_names text := '{"host":' || to_json(p_host)::text;
  v_notice text := v_names || ',"base":' || coalesce(to_json(p_base)::text, 'null') || ',"tag":' || to_json(p_tag)::text
    || ',"changes":' || p_changes || '}';
BEGIN
  PERFORM pg_notify(slotkeeper_channel_of(i), CASE WHEN octet_length(v_notice) > 7900 THEN v_names || '}' ELSE v_notice END)
  FROM unnest(p_instances) i;
  RETURN true;
END $$;

-- A slot row for a host that has none free: one of a forgotten host, else a new one.
CREATE FUNCTION slotkeeper_new_slot(p_host text) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_index integer := (SELECT coalesce(max(slot_index), 0) + 1 FROM upstream_slot_pool WHERE hostname_pattern = p_host);
  v_id integer;
BEGIN
  UPDATE upstream_slot_pool SET hostname_pattern = p_host, slot_index = v_index
  WHERE id = (
    SELECT f.id FROM upstream_slot_pool f WHERE f.hostname_pattern = '' ORDER BY f.slot_index LIMIT 1 FOR UPDATE SKIP LOCKED)
  RETURNING id INTO v_id;
  -- The sequence starts again at its end; an original may have left rows there.
  WHILE v_id IS NULL LOOP
    INSERT INTO upstream_slot_pool (hostname_pattern, slot_index) VALUES (p_host, v_index)
    ON CONFLICT DO NOTHING RETURNING id INTO v_id;
  END LOOP;
  RETURN v_id;
END $$;

CREATE FUNCTION slotkeeper_check_fence(h slotkeeper_host, p_fence bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_fence < h.fence THEN
    RAISE EXCEPTION 'The fence of host % would fall from % to %', h.host, h.fence, p_fence USING ERRCODE = 'SK002';
  END IF;
END $$;

-- Refuses a new lease that breaks P2 or P3.
CREATE FUNCTION slotkeeper_check_lease(
  p_host text, p_fence bigint, p_now double precision, p_slots double precision, p_occupied bigint, l jsonb
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_occupied >= p_slots AND (l ->> 'endsAt')::double precision > p_now THEN
    RAISE EXCEPTION 'Host % would have % slots occupied, and its limit is %', p_host, p_occupied + 1, p_slots
      USING ERRCODE = 'SK002';
  ELSIF (l ->> 'fence')::bigint <= p_fence THEN
    RAISE EXCEPTION 'A lease of host % has the fence %, and % was given out before', p_host, l ->> 'fence', p_fence
      USING ERRCODE = 'SK002';
  END IF;
END $$;

-- Writes the leases of a change set, each into its row, else into the row of a lease that ends with the same commit, else into a
-- free one; then frees the rows of the others that end. p_ended: their tokens. A new lease must keep P2, counted with what the
-- commit has written before, and P3.
CREATE FUNCTION slotkeeper_write_leases(
  p_host text, p_fence bigint, p_now double precision, p_slots double precision, p_leases jsonb, p_ended jsonb
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  l jsonb;
  v_id integer;
  v_ended integer;
  v_free integer;
  v_occupied bigint;
BEGIN
  FOR i IN 0 .. jsonb_array_length(p_leases) - 1 LOOP
    l := p_leases -> i;
    SELECT max(s.id) FILTER (WHERE s.token = l ->> 'key'), max(s.id) FILTER (WHERE s.token = p_ended ->> 0),
      min(s.id) FILTER (WHERE s.token IS NULL),
      count(*) FILTER (WHERE s.ends_at > p_now AND NOT p_ended ? s.token) + (
        SELECT count(*) FROM slotkeeper_record r
        WHERE r.host = p_host AND r.kind = 'offer' AND (r.data ->> 'lapsesAt')::double precision > p_now)
    INTO v_id, v_ended, v_free, v_occupied FROM upstream_slot_pool s WHERE s.hostname_pattern = p_host;
    IF v_id IS NULL THEN
      IF v_occupied >= p_slots OR (l ->> 'fence')::bigint <= p_fence THEN
        PERFORM slotkeeper_check_lease(p_host, p_fence, p_now, p_slots, v_occupied, l);
      END IF;
      v_id := coalesce(v_ended, v_free, slotkeeper_new_slot(p_host));
      IF v_ended IS NOT NULL THEN p_ended := p_ended - 0; END IF;
    END IF;
    UPDATE upstream_slot_pool SET status = 'locked', ip_hash = l ->> 'bucket', token = l ->> 'key', fence = (l ->> 'fence')::bigint,
      locked_at = to_timestamp((l ->> 'grantedAt')::double precision / 1000), session = l ->> 'session', instance = l ->> 'instance',
      granted_at = (l ->> 'grantedAt')::double precision, ends_at = (l ->> 'endsAt')::double precision,
      is_released = (l ->> 'isReleased')::boolean, is_probe = (l ->> 'isProbe')::boolean, keep_until = (l ->> 'keepUntil')::double precision
    WHERE id = v_id;
  END LOOP;
  IF p_ended <> '[]' THEN
    UPDATE upstream_slot_pool SET status = 'available', ip_hash = NULL, locked_at = NULL, token = NULL, fence = NULL,
      session = NULL, instance = NULL, granted_at = NULL, ends_at = NULL, is_released = false, is_probe = false, keep_until = NULL
    WHERE hostname_pattern = p_host AND p_ended ? token;
  END IF;
  RETURN true;
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
    opened_at, window_start_at, window_ms)
  VALUES (p_host, coalesce(p_hostname, p_host), floor(v_opened_at / 1000), (v_opened_at IS NOT NULL)::integer,
    nullif((b ->> 'code')::integer, 0), floor(v_window_start_at / 1000), (b ->> 'errors')::integer, (b ->> 'successes')::integer,
    (b ->> 'consecutive')::integer, v_opened_at, v_window_start_at, (b ->> 'windowMs')::double precision)
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
    window_start_at = excluded.window_start_at,
    window_ms = excluded.window_ms;
END $$;

CREATE FUNCTION slotkeeper_closed_breaker() RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$ SELECT '{"code": 0, "errors": 0, "successes": 0, "consecutive": 0}'::jsonb $$;

-- Slots that are occupied at p_now: live leases, and offers that have not lapsed. p_without: tokens and sessions that do not count.
-- PL/pgSQL, because a function in SQL that is not inlined is set up again for every call.
CREATE FUNCTION slotkeeper_occupied(p_host text, p_now double precision, p_without jsonb DEFAULT '[]') RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT count(*) FROM upstream_slot_pool WHERE hostname_pattern = p_host AND ends_at > p_now AND NOT p_without ? token) + (
    SELECT count(*) FROM slotkeeper_record
    WHERE host = p_host AND kind = 'offer' AND (data ->> 'lapsesAt')::double precision > p_now AND NOT p_without ? key);
END $$;

-- Refuses new offers that break P2. p_before: what was occupied before them.
CREATE FUNCTION slotkeeper_check_offers(p_host text, p_now double precision, p_slots double precision, p_before bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_after bigint := slotkeeper_occupied(p_host, p_now);
BEGIN
  IF v_after > p_slots AND v_after > p_before THEN
    RAISE EXCEPTION 'Host % would have % slots occupied, and its limit is %', p_host, v_after, p_slots USING ERRCODE = 'SK002';
  END IF;
END $$;

-- Writes the cooldowns of a change set.
CREATE FUNCTION slotkeeper_write_cooldowns(p_host text, p_now double precision, p_puts jsonb, p_dels jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM slotkeeper_del_cooldown(p_host, d ->> 1) FROM jsonb_array_elements(p_dels) d WHERE d ->> 0 = 'cooldown';
  PERFORM slotkeeper_put_cooldown(p_host, e ->> 'key', (e ->> 'until')::double precision, p_now)
  FROM jsonb_array_elements(p_puts) e WHERE e ->> 'kind' = 'cooldown';
END $$;

-- Writes a change set: the host's row, records, breaker and tail; no name is both put and deleted. h: the row as it was. False:
-- it has changed since it was read, and nothing was written. p_slots: how many slots may be occupied if the change set adds a
-- lease or an offer (P2); else the head says it.
-- The fewer expressions and statements the better: PL/pgSQL makes each ready again in every transaction.
CREATE FUNCTION slotkeeper_apply(
  h slotkeeper_host, p_tag text, p_now double precision, p_changes text, p_slots double precision DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  v_changes jsonb := p_changes;
  v_puts jsonb := v_changes -> 'puts';
  v_dels jsonb := v_changes -> 'dels';
  v_before bigint;
  n slotkeeper_host;
BEGIN
  UPDATE slotkeeper_host SET breaker = v_changes #> '{head,breaker}', tag = p_tag, commits = h.commits + 1,
    slots = coalesce((v_changes #>> '{head,slots}')::double precision, 'Infinity'), fence = (v_changes #>> '{head,fence}')::bigint,
    last_now = greatest(h.last_now, p_now), reserved_for = NULL, reserved_until = 0, updated_at = slotkeeper_now()
  WHERE host = h.host AND tag = coalesce(h.tag, p_tag) AND reserved_until = h.reserved_until
  RETURNING * INTO n;
  IF NOT FOUND THEN RETURN false; END IF;
  IF n.fence < h.fence OR n.breaker <> h.breaker THEN
    PERFORM slotkeeper_check_fence(h, n.fence);
    PERFORM slotkeeper_copy_breaker(h.host, v_changes #>> '{head,hostname}', n.breaker);
  END IF;
  IF strpos(p_changes, '"offer"') > 0 AND v_puts @> '[{"kind": "offer"}]' THEN
    v_before := slotkeeper_occupied(h.host, p_now, jsonb_path_query_array(v_dels, 'strict $[*] ? (@[0] == "offer")[1]'));
  END IF;
  -- Before the leases, which are counted with the offers that are left. The settings of this function keep the plan to one index
  -- lookup for each name: without them one that is made while the table is empty reads all records of the host. A DELETE and an
  -- INSERT … ON CONFLICT need 160 bytes of write-ahead log more.
  MERGE INTO slotkeeper_record r USING (
    SELECT e ->> 'kind' AS kind, e ->> 'key' AS key, e AS data FROM jsonb_array_elements(v_puts) e
    UNION ALL SELECT d ->> 0, d ->> 1, NULL FROM jsonb_array_elements(v_dels) d
  ) c ON r.host = h.host AND r.kind = c.kind AND r.key = c.key
  WHEN MATCHED AND c.data IS NULL THEN DELETE
  WHEN MATCHED THEN UPDATE SET data = c.data
  WHEN NOT MATCHED AND c.data IS NOT NULL AND c.kind NOT IN ('lease', 'cooldown') THEN INSERT VALUES (h.host, c.kind, c.key, c.data);
  -- Not PERFORM: a condition is evaluated without a statement.
  IF strpos(p_changes, '"lease"') > 0 AND NOT slotkeeper_write_leases(h.host, h.fence, p_now, coalesce(p_slots, n.slots),
    jsonb_path_query_array(v_puts, 'strict $[*] ? (@.kind == "lease")'),
    jsonb_path_query_array(v_dels, 'strict $[*] ? (@[0] == "lease")[1]'))
    OR strpos(p_changes, '"cooldown"') > 0
  THEN
    PERFORM slotkeeper_write_cooldowns(h.host, p_now, v_puts, v_dels);
  END IF;
  IF v_before IS NOT NULL THEN PERFORM slotkeeper_check_offers(h.host, p_now, coalesce(p_slots, n.slots), v_before); END IF;
  -- The host's key, which every slot token contains, is one character in the tail: JSON has no control characters of its own.
  -- Not ON CONFLICT: it locks the row first, which is one more write-ahead record.
  UPDATE slotkeeper_tail SET number = n.commits, base = h.tag, tag = p_tag, changes = replace(p_changes, h.host, chr(1))
  WHERE host = h.host AND place = n.commits % 64;
  IF NOT FOUND THEN
    INSERT INTO slotkeeper_tail VALUES (h.host, n.commits % 64, n.commits, h.tag, p_tag, replace(p_changes, h.host, chr(1)));
  END IF;
  RETURN true;
END $$;

-- The head is part of the last commit. Written to the host's row as well it would cost 500 bytes of write-ahead log per commit.
CREATE FUNCTION slotkeeper_head(h slotkeeper_host) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT replace(t.changes, chr(1), h.host)::jsonb -> 'head' FROM slotkeeper_tail t WHERE t.host = h.host AND t.place = h.commits % 64);
END $$;

-- A host before its first commit; not yet in the table.
CREATE FUNCTION slotkeeper_unknown_host(p_host text) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host;
BEGIN
  h.host := p_host;
  h.commits := 0;
  h.breaker := slotkeeper_closed_breaker();
  h.slots := 0;
  h.fence := slotkeeper_floor();
  -- Fences start at the microseconds of the store's time, which is therefore above those of forgotten hosts.
  h.last_now := CASE WHEN h.fence >= slotkeeper_now() * 1000 THEN ceil(h.fence / 1000.0) + 1 ELSE 0 END;
  h.reserved_until := 0;
  h.updated_at := slotkeeper_now();
  RETURN h;
END $$;

-- Makes the row of a host that was unknown. False: another transaction was first.
CREATE FUNCTION slotkeeper_insert_host(h slotkeeper_host, p_tag text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO slotkeeper_host (host, breaker, tag, commits, slots, fence, last_now, updated_at)
  VALUES (h.host, h.breaker, p_tag, h.commits, h.slots, h.fence, h.last_now, h.updated_at) ON CONFLICT DO NOTHING;
  RETURN FOUND;
END $$;

-- Forgets a locked host, with everything that belongs to it. Its slot rows wait for the next host.
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

-- LeaseRecord of records.ts.
CREATE FUNCTION slotkeeper_lease(s upstream_slot_pool) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('kind', 'lease', 'key', s.token, 'fence', s.fence, 'session', s.session, 'bucket', s.ip_hash,
    'instance', s.instance, 'grantedAt', s.granted_at, 'endsAt', s.ends_at, 'isReleased', s.is_released, 'isProbe', s.is_probe,
    'keepUntil', s.keep_until)
$$;

-- BookImage of records.ts.
CREATE FUNCTION slotkeeper_book(h slotkeeper_host) RETURNS json
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN '{"head":' || slotkeeper_head(h)::text || ',"records":[' || concat_ws(',',
    (SELECT string_agg(slotkeeper_lease(s)::text, ',' ORDER BY s.fence) FROM upstream_slot_pool s
     WHERE s.hostname_pattern = h.host AND s.status = 'locked'),
    (SELECT string_agg(jsonb_build_object('kind', 'cooldown', 'key', c.ip_hash, 'until', c.cool_until)::text, ',')
     FROM upstream_ip_cooldown c WHERE c.hostname_pattern = h.host AND c.cool_until IS NOT NULL),
    (SELECT string_agg(r.data::text, ',') FROM slotkeeper_record r WHERE r.host = h.host)
  ) || ']}';
END $$;

-- ReadReply of the port: the commits since p_since, or the whole host. h is NULL if there is no such host.
CREATE FUNCTION slotkeeper_reply(h slotkeeper_host, p_since text, p_now double precision, p_refusal text DEFAULT NULL) RETURNS json
LANGUAGE plpgsql STABLE AS $$
DECLARE
  v_commits text := CASE WHEN p_since = h.tag THEN '' END;
  v_tail text;
BEGIN
  IF p_since <> h.tag THEN
    SELECT replace(string_agg(t.changes, ',' ORDER BY t.number), chr(1), h.host) INTO v_commits FROM slotkeeper_tail t
    WHERE t.host = h.host AND t.number >= (SELECT f.number FROM slotkeeper_tail f WHERE f.host = h.host AND f.base = p_since);
  END IF;
  v_tail := CASE
    WHEN v_commits IS NOT NULL THEN '{"kind":"changes","commits":[' || v_commits || ']}'
    WHEN h.tag IS NULL THEN '{"kind":"book"}'
    ELSE '{"kind":"book","book":' || slotkeeper_book(h)::text || '}' END;
  RETURN '{"isOk":false' || coalesce(',"reason":"' || p_refusal || '"', '') || ',"now":' || p_now
    || coalesce(',"tag":' || to_json(h.tag)::text, '') || ',"tail":' || v_tail || '}';
END $$;

REVOKE ALL ON FUNCTION slotkeeper_floor, slotkeeper_channel, slotkeeper_channel_of, slotkeeper_notify,
  slotkeeper_new_slot, slotkeeper_check_fence, slotkeeper_check_lease, slotkeeper_write_leases,
  slotkeeper_put_cooldown, slotkeeper_del_cooldown, slotkeeper_copy_breaker, slotkeeper_closed_breaker,
  slotkeeper_occupied, slotkeeper_check_offers, slotkeeper_write_cooldowns, slotkeeper_apply, slotkeeper_head,
  slotkeeper_unknown_host, slotkeeper_insert_host, slotkeeper_forget, slotkeeper_lease, slotkeeper_book,
  slotkeeper_reply FROM PUBLIC;
