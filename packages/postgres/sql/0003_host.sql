-- The inner parts: how changes are written to a host that the caller has locked, and how a host is read.

-- The highest fence of forgotten hosts.
CREATE FUNCTION slotkeeper_floor() RETURNS bigint
LANGUAGE sql STABLE AS $$ SELECT coalesce(max(fence), 0) FROM slotkeeper_floor $$;

-- Where an instance listens: at most 63 bytes, whatever the names are.
CREATE FUNCTION slotkeeper_channel(p_instance text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
  SELECT 'slotkeeper_' || left(encode(sha256(convert_to(current_schema() || chr(10) || p_instance, 'UTF8')), 'hex'), 40)
$$;

-- Sends a commit to instances. What does not fit into a notification is left out, and the instance reads it.
CREATE FUNCTION slotkeeper_notify(p_instances text[], p_host text, p_base text, p_tag text, p_changes text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_names text := '{"host":' || to_json(p_host)::text;
  v_news text := v_names || ',"base":' || coalesce(to_json(p_base)::text, 'null') || ',"tag":' || to_json(p_tag)::text
    || ',"changes":' || p_changes || '}';
  v_instance text;
BEGIN
  IF octet_length(v_news) > 7900 THEN v_news := v_names || '}'; END IF;
  FOREACH v_instance IN ARRAY p_instances LOOP
    PERFORM pg_notify(slotkeeper_channel(v_instance), v_news);
  END LOOP;
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

-- Writes a lease, into its row, else into the row of a lease that ends with the same commit (p_ended), else into a free one.
-- A new lease must keep P2, counted with what the commit has written before, and P3. Returns whether it took the row of
-- p_ended[1].
CREATE FUNCTION slotkeeper_put_lease(
  p_host text, p_fence bigint, p_now double precision, p_slots double precision, p_ended text[], l jsonb
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_token text := l ->> 'key';
  v_granted_at double precision := l ->> 'grantedAt';
  v_id integer;
  v_ended integer;
  v_free integer;
  v_occupied bigint;
BEGIN
  SELECT max(s.id) FILTER (WHERE s.token = v_token), max(s.id) FILTER (WHERE s.token = p_ended[1]),
    min(s.id) FILTER (WHERE s.token IS NULL),
    count(*) FILTER (WHERE s.ends_at > p_now AND s.token <> ALL (p_ended)) + (
      SELECT count(*) FROM slotkeeper_record r
      WHERE r.host = p_host AND r.kind = 'offer' AND (r.data ->> 'lapsesAt')::double precision > p_now)
  INTO v_id, v_ended, v_free, v_occupied FROM upstream_slot_pool s WHERE s.hostname_pattern = p_host;
  IF v_id IS NULL THEN
    IF v_occupied >= p_slots AND (l ->> 'endsAt')::double precision > p_now THEN
      RAISE EXCEPTION 'Host % would have % slots occupied, and its limit is %', p_host, v_occupied + 1, p_slots
        USING ERRCODE = 'SK002';
    ELSIF (l ->> 'fence')::bigint <= p_fence THEN
      RAISE EXCEPTION 'A lease of host % has the fence %, and % was given out before', p_host, l ->> 'fence', p_fence
        USING ERRCODE = 'SK002';
    END IF;
    v_id := coalesce(v_ended, v_free, slotkeeper_new_slot(p_host));
  END IF;
  UPDATE upstream_slot_pool SET status = 'locked', ip_hash = l ->> 'bucket', locked_at = to_timestamp(v_granted_at / 1000),
    token = v_token, fence = (l ->> 'fence')::bigint, session = l ->> 'session', instance = l ->> 'instance',
    granted_at = v_granted_at, ends_at = (l ->> 'endsAt')::double precision, is_released = (l ->> 'isReleased')::boolean,
    is_probe = (l ->> 'isProbe')::boolean, keep_until = (l ->> 'keepUntil')::double precision
  WHERE id = v_id;
  RETURN v_id = v_ended;
END $$;

CREATE FUNCTION slotkeeper_end_leases(p_host text, p_tokens text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE upstream_slot_pool SET status = 'available', ip_hash = NULL, locked_at = NULL, token = NULL, fence = NULL,
    session = NULL, instance = NULL, granted_at = NULL, ends_at = NULL, is_released = false, is_probe = false, keep_until = NULL
  WHERE hostname_pattern = p_host AND token = ANY (p_tokens);
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

-- Slots that are occupied at p_now: live leases, and offers that have not lapsed. PL/pgSQL, because a function in SQL that is
-- not inlined is set up again for every call.
CREATE FUNCTION slotkeeper_occupied(p_host text, p_now double precision) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT count(*) FROM upstream_slot_pool WHERE hostname_pattern = p_host AND ends_at > p_now) + (
    SELECT count(*) FROM slotkeeper_record
    WHERE host = p_host AND kind = 'offer' AND (data ->> 'lapsesAt')::double precision > p_now);
END $$;

-- Writes the records of a change set; no name is both put and deleted. p_fence: the last one given out before. p_slots: how
-- many slots may be occupied if the change set adds a lease or an offer (P2).
CREATE FUNCTION slotkeeper_write(
  p_host text, p_fence bigint, p_now double precision, p_slots double precision, p_puts jsonb, p_dels jsonb
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  r jsonb;
  v_kinds text[] := '{}';
  v_keys text[] := '{}';
  v_ended text[] := '{}';
  v_records jsonb[] := '{}';
  v_before bigint;
  v_after bigint;
BEGIN
  FOR i IN 0 .. jsonb_array_length(p_dels) - 1 LOOP
    r := p_dels -> i;
    CASE r ->> 0
      WHEN 'lease' THEN v_ended := v_ended || (r ->> 1);
      WHEN 'cooldown' THEN PERFORM slotkeeper_del_cooldown(p_host, r ->> 1);
      ELSE v_kinds := v_kinds || (r ->> 0); v_keys := v_keys || (r ->> 1);
    END CASE;
  END LOOP;
  IF cardinality(v_keys) > 0 THEN
    -- One index lookup for each name, whatever the statistics say. Joined to the list of names, the planner hashes all rows of
    -- the host once it knows that there are many.
    DELETE FROM slotkeeper_record WHERE ctid = ANY (ARRAY(
      SELECT f.ctid FROM unnest(v_kinds, v_keys) d (kind, key),
        LATERAL (SELECT ctid FROM slotkeeper_record WHERE host = p_host AND kind = d.kind AND key = d.key LIMIT 1) f));
  END IF;
  FOR i IN 0 .. jsonb_array_length(p_puts) - 1 LOOP
    r := p_puts -> i;
    CASE r ->> 'kind'
      WHEN 'lease' THEN
        IF slotkeeper_put_lease(p_host, p_fence, p_now, p_slots, v_ended, r) THEN v_ended := v_ended[2:]; END IF;
      WHEN 'cooldown' THEN PERFORM slotkeeper_put_cooldown(p_host, r ->> 'key', (r ->> 'until')::double precision, p_now);
      ELSE
        IF v_before IS NULL AND r ->> 'kind' = 'offer' THEN v_before := slotkeeper_occupied(p_host, p_now); END IF;
        v_records := v_records || r;
    END CASE;
  END LOOP;
  IF cardinality(v_ended) > 0 THEN PERFORM slotkeeper_end_leases(p_host, v_ended); END IF;
  IF cardinality(v_records) > 0 THEN
    -- Not MERGE: it needs 150 bytes of write-ahead log less, and is a join, for which a plan that was made while the table was
    -- empty reads all rows of the host.
    INSERT INTO slotkeeper_record (host, kind, key, data)
    SELECT p_host, e ->> 'kind', e ->> 'key', e FROM unnest(v_records) e
    ON CONFLICT (host, kind, key) DO UPDATE SET data = excluded.data;
  END IF;
  IF v_before IS NOT NULL THEN
    v_after := slotkeeper_occupied(p_host, p_now);
    IF v_after > p_slots AND v_after > v_before THEN
      RAISE EXCEPTION 'Host % would have % slots occupied, and its limit is %', p_host, v_after, p_slots USING ERRCODE = 'SK002';
    END IF;
  END IF;
  RETURN true;
END $$;

-- Writes a change set to a locked host: records, breaker, tail, and the host's row. h: the row as it was.
CREATE FUNCTION slotkeeper_apply(
  h slotkeeper_host, p_tag text, p_now double precision, p_changes text, p_slots double precision DEFAULT NULL
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_changes jsonb := p_changes;
  v_head jsonb := v_changes -> 'head';
  v_breaker jsonb := v_head -> 'breaker';
  v_slots double precision := coalesce((v_head ->> 'slots')::double precision, 'Infinity');
  v_fence bigint := v_head ->> 'fence';
  v_place smallint := (h.commits + 1) % 64;
BEGIN
  IF v_fence < h.fence THEN
    RAISE EXCEPTION 'The fence of host % would fall from % to %', h.host, h.fence, v_fence USING ERRCODE = 'SK002';
  END IF;
  IF NOT slotkeeper_write(h.host, h.fence, p_now, coalesce(p_slots, v_slots), v_changes -> 'puts', v_changes -> 'dels') THEN
    RETURN false;
  END IF;
  IF v_breaker <> h.breaker THEN PERFORM slotkeeper_copy_breaker(h.host, v_head ->> 'hostname', v_breaker); END IF;
  -- Not ON CONFLICT: it locks the row first, which is one more write-ahead record.
  UPDATE slotkeeper_tail SET number = h.commits + 1, base = h.tag, tag = p_tag, changes = p_changes
  WHERE host = h.host AND place = v_place;
  IF NOT FOUND THEN
    INSERT INTO slotkeeper_tail VALUES (h.host, v_place, h.commits + 1, h.tag, p_tag, p_changes);
  END IF;
  UPDATE slotkeeper_host SET breaker = v_breaker, tag = p_tag, commits = h.commits + 1, slots = v_slots, fence = v_fence,
    last_now = greatest(h.last_now, p_now), reserved_for = NULL, reserved_until = 0, updated_at = slotkeeper_now()
  WHERE host = h.host;
  RETURN true;
END $$;

-- The head is part of the last commit. Written to the host's row as well it would cost 500 bytes of write-ahead log per commit.
CREATE FUNCTION slotkeeper_head(h slotkeeper_host) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT t.changes::jsonb -> 'head' FROM slotkeeper_tail t WHERE t.host = h.host AND t.place = h.commits % 64);
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
    SELECT string_agg(t.changes, ',' ORDER BY t.number) INTO v_commits FROM slotkeeper_tail t
    WHERE t.host = h.host AND t.number >= (SELECT f.number FROM slotkeeper_tail f WHERE f.host = h.host AND f.base = p_since);
  END IF;
  v_tail := CASE
    WHEN v_commits IS NOT NULL THEN '{"kind":"changes","commits":[' || v_commits || ']}'
    WHEN h.tag IS NULL THEN '{"kind":"book"}'
    ELSE '{"kind":"book","book":' || slotkeeper_book(h)::text || '}' END;
  RETURN '{"isOk":false' || coalesce(',"reason":"' || p_refusal || '"', '') || ',"now":' || p_now
    || coalesce(',"tag":' || to_json(h.tag)::text, '') || ',"tail":' || v_tail || '}';
END $$;

REVOKE ALL ON FUNCTION slotkeeper_floor, slotkeeper_channel, slotkeeper_notify, slotkeeper_new_slot,
  slotkeeper_put_lease, slotkeeper_end_leases, slotkeeper_put_cooldown, slotkeeper_del_cooldown, slotkeeper_copy_breaker,
  slotkeeper_closed_breaker, slotkeeper_occupied, slotkeeper_write, slotkeeper_apply, slotkeeper_head, slotkeeper_unknown_host, slotkeeper_insert_host, slotkeeper_forget,
  slotkeeper_lease, slotkeeper_book, slotkeeper_reply FROM PUBLIC;
