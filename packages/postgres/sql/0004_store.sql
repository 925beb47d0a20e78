-- The functions that the store calls. They keep the promises P1 to P8 of packages/queue/src/store/host-store.ts. Each
-- call is one statement and one transaction. Each function runs with the rights of its owner (SECURITY DEFINER), so the
-- service needs no right to any table.
--
-- Why the functions have these settings:
--   search_path           a caller must not replace our tables by its own
--   lock_timeout          a host that another program keeps locked must fail only its own callers, and soon: a waiting call
--                         occupies a connection of the pool. Among commits alone, the wait takes milliseconds
--   extra_float_digits    the database sends numbers with all their digits, whatever the session has set
--   plan_cache_mode       otherwise PostgreSQL plans some statements again for every call, because a plan for the given
--                         values looks cheaper
--   enable_seqscan        a plan from the time when a table was small is kept until the next ANALYZE, and would read all hosts

-- Compares and swaps: swaps the host's row, and writes records, breaker and ring. P1: the swap is the first write and
-- makes the commits of a host one sequence. Its row lock ends with this call. Arguments that need an explanation:
--   p_head               the head; NULL: the host is forgotten, and the following arguments are ignored
--   p_slots, p_fence     fields of the head; p_slots NULL: no limit
--   p_offers_until       when the last offer among the records lapses; 0: there is none
--   p_records            records other than leases, as kind, key, the other fields, kind, key, …; NULL instead of fields: it is
--                        deleted. Several arrays would cost more
--   p_leases, p_numbers  leases, in the order of their fences, as key, session, bucket, instance, charge, key, … and as
--                        fence, grantedAt, endsAt, keepUntil, isReleased, isProbe, width, fence, …; 1: true
--   p_ended              the tokens of leases that end
--   p_names              "kind key" of every record that changes, for the ring; NULL: no other instance needs them
--   p_notice             CommitNotice for the instances of p_wake
--   p_most               how many slots may be occupied if a lease or an offer is added (P2), if that is not p_slots
--   p_lock_timeout       how long the commit waits for the lock, if not as long as this function's setting
-- This is one function with plain arguments, because PL/pgSQL prepares every expression again in every transaction. One
-- JSON argument takes about one and a half times as long; rows as composite arguments of inner functions took 35 µs more.
CREATE FUNCTION slotkeeper_commit(
  p_schema integer, p_host text, p_instance text, p_base text, p_tag text, p_now double precision, p_conflicts integer,
  p_head json, p_slots double precision, p_fence bigint, p_offers_until double precision, p_records text[], p_leases text[],
  p_numbers double precision[], p_ended text[], p_names text[], p_wake text[], p_notice text, p_most double precision DEFAULT NULL,
  p_lock_timeout text DEFAULT NULL
) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '500ms' SET extra_float_digits = 1
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
  SET enable_material = off AS $$
DECLARE
  v_clock double precision := slotkeeper_now();
  v_first_now double precision;
  v_before bigint;
  v_is_breaker_new boolean;
  v_offers_until double precision := p_offers_until;
  v_adds boolean := false;
  v_occupied bigint;
  v_number bigint;
BEGIN
  IF p_schema IS DISTINCT FROM slotkeeper_schema_number() THEN PERFORM slotkeeper_check_schema(p_schema); END IF;
  IF p_lock_timeout IS NOT NULL THEN PERFORM set_config('lock_timeout', p_lock_timeout, true); END IF;
  IF p_head IS NULL THEN RETURN slotkeeper_commit_locked(p_host, p_instance, p_base, p_tag, p_now, true, p_conflicts); END IF;
  p_slots := coalesce(p_slots, 'Infinity');
  IF p_base IS NULL THEN
    v_before := slotkeeper_floor();
    v_first_now := slotkeeper_first_now(v_before, v_clock);
    v_clock := greatest(v_clock, v_first_now);
    INSERT INTO slotkeeper_host (host, slots, is_breaker_new, offers_until, fence_before, fence, last_now, updated_at, tag, head)
    SELECT p_host, p_slots, (p_head -> 'breaker')::jsonb <> slotkeeper_closed_breaker(), p_offers_until, v_before, p_fence,
      greatest(v_first_now, p_now), v_clock, p_tag, p_head
    WHERE slotkeeper_refusal(NULL, 0, NULL, p_instance, p_base, p_now, v_clock) IS NULL
    ON CONFLICT DO NOTHING
    RETURNING fence_before, is_breaker_new INTO v_before, v_is_breaker_new;
  ELSE
    UPDATE slotkeeper_host SET slots = p_slots, is_breaker_new = head ->> 'breaker' <> p_head ->> 'breaker', reserved_for = NULL,
      reserved_until = 0, offers_until = greatest(offers_until, p_offers_until), fence_before = fence, fence = p_fence,
      last_now = greatest(last_now, p_now), updated_at = greatest(v_clock, last_now), tag = p_tag, head = p_head
    WHERE host = p_host
      AND slotkeeper_refusal(reserved_for, reserved_until, tag, p_instance, p_base, p_now, greatest(v_clock, last_now)) IS NULL
    RETURNING fence_before, is_breaker_new, updated_at, offers_until INTO v_before, v_is_breaker_new, v_clock, v_offers_until;
  END IF;
  IF v_before IS NULL THEN RETURN slotkeeper_commit_locked(p_host, p_instance, p_base, p_tag, p_now, false, p_conflicts); END IF;
  IF p_fence < v_before OR v_is_breaker_new THEN
    IF p_fence < v_before THEN
      RAISE EXCEPTION 'The fence of host % would fall from % to %', p_host, v_before, p_fence USING ERRCODE = 'SK002';
    END IF;
    PERFORM slotkeeper_copy_breaker(p_host, p_head);
  END IF;
  IF p_offers_until > 0 THEN v_adds := slotkeeper_adds_offer(p_host, p_now, p_records); END IF;
  -- The settings of this function make the plan use one index lookup for each name. Without them, a plan that is made
  -- while the table is empty reads all records of the host. DELETE and INSERT … ON CONFLICT need 160 bytes of
  -- write-ahead log more; one statement for each record takes 10 µs more.
  IF cardinality(p_records) > 0 THEN
    MERGE INTO slotkeeper_record r USING generate_series(1, cardinality(p_records), 3) i
    ON r.host = p_host AND r.kind = p_records[i] AND r.key = p_records[i + 1]
    WHEN MATCHED AND p_records[i + 2] IS NULL THEN DELETE
    WHEN MATCHED THEN UPDATE SET data = p_records[i + 2]::json
    WHEN NOT MATCHED AND p_records[i + 2] IS NOT NULL AND p_records[i] <> 'cooldown' THEN
      INSERT VALUES (p_host, p_records[i], p_records[i + 1], p_records[i + 2]::json);
    IF 'cooldown' = ANY (p_records) THEN PERFORM slotkeeper_write_cooldowns(p_host, p_now, p_records); END IF;
  END IF;
  p_most := coalesce(p_most, p_slots);
  IF slotkeeper_write_leases(p_host, v_before, p_now, p_most, v_offers_until, p_leases, p_numbers, p_ended) OR v_adds THEN
    -- P2. After the records: leases are counted together with the remaining offers. slotkeeper_occupied would return the
    -- same, but take longer.
    SELECT coalesce(sum(width), 0) INTO v_occupied FROM upstream_slot_pool WHERE hostname_pattern = p_host AND ends_at > p_now;
    IF v_offers_until > p_now THEN v_occupied := v_occupied + slotkeeper_offers(p_host, p_now); END IF;
    IF v_occupied > p_most THEN PERFORM slotkeeper_refuse_slots(p_host, v_occupied, p_most); END IF;
  END IF;
  IF p_names IS NOT NULL THEN
    -- Not ON CONFLICT: it locks the row first, which costs one more write-ahead record.
    v_number := slotkeeper_number(p_tag);
    UPDATE slotkeeper_ring SET base = p_base, tag = p_tag, names = p_names WHERE host = p_host AND place = v_number % 64;
    IF NOT FOUND THEN INSERT INTO slotkeeper_ring VALUES (p_host, v_number % 64, p_base, p_tag, p_names); END IF;
  END IF;
  IF cardinality(p_wake) > 0 THEN PERFORM slotkeeper_notify(p_wake, p_host, p_notice); END IF;
  RETURN '{"isOk":true,"now":' || v_clock || '}';
END $$;

-- Commits of different hosts, in one transaction: the service and the database need less time than for one call each.
-- p_commits: a list of objects with the arguments of slotkeeper_commit, in the order of their hosts, so that two such
-- calls do not wait for each other. If one commit fails, all fail, and the store sends each of them alone. So that no
-- host waits for another one, a commit waits only a moment for its lock (P7).
CREATE FUNCTION slotkeeper_commit_all(p_schema integer, p_commits json) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  RETURN (
    SELECT json_agg(slotkeeper_commit(p_schema, p_host, p_instance, p_base, p_tag, p_now, p_conflicts, p_head, p_slots, p_fence,
      p_offers_until, p_records, p_leases, p_numbers, p_ended, p_names, p_wake, p_notice, p_lock_timeout => '50ms'))
    FROM json_to_recordset(p_commits) c (p_host text, p_instance text, p_base text, p_tag text, p_now double precision,
      p_conflicts integer, p_head json, p_slots double precision, p_fence bigint, p_offers_until double precision, p_records text[],
      p_leases text[], p_numbers double precision[], p_ended text[], p_names text[], p_wake text[], p_notice text));
END $$;

-- Everything that is not a plain swap: the end of a host, and refusals, which return one state of the host. If the
-- reason for a refusal no longer exists, the instance decides again on the same state.
CREATE FUNCTION slotkeeper_commit_locked(
  p_host text, p_instance text, p_base text, p_tag text, p_now double precision, p_forgets boolean, p_conflicts integer
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host;
  v_clock double precision;
  v_refusal text;
BEGIN
  SELECT * INTO h FROM slotkeeper_host WHERE host = p_host FOR NO KEY UPDATE;
  v_clock := greatest(slotkeeper_now(), coalesce(h.last_now, (slotkeeper_unknown_host(p_host)).last_now));
  v_refusal := slotkeeper_refusal(h.reserved_for, h.reserved_until, h.tag, p_instance, p_base, p_now, v_clock);
  IF v_refusal IS NULL AND p_forgets THEN
    IF h.tag IS NOT NULL THEN PERFORM slotkeeper_forget(h); END IF;
    RETURN '{"isOk":true,"now":' || v_clock || '}';
  END IF;
  RETURN slotkeeper_refuse(h, p_instance, p_base, p_tag, p_conflicts, v_clock, coalesce(v_refusal, 'conflict'));
END $$;

-- Why a commit is refused. NULL: it can be accepted. This is an expression, which the planner inlines.
CREATE FUNCTION slotkeeper_refusal(
  p_reserved_for text, p_reserved_until double precision, p_stored text, p_instance text, p_base text, p_now double precision,
  p_clock double precision
) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_reserved_until > p_clock AND p_reserved_for <> '' AND p_reserved_for <> p_instance THEN 'reserved'
    WHEN p_stored IS DISTINCT FROM p_base THEN 'conflict'
    WHEN p_now NOT BETWEEN p_clock - 1000 AND p_clock THEN 'clock' END
$$;

-- The reply to a refused commit. P4: if it is the last commit, or in the ring, it was accepted before; a commit that is
-- missing there may be the base of the next one. After the third conflict in a row the next commit is reserved for the
-- instance.
CREATE FUNCTION slotkeeper_refuse(
  h slotkeeper_host, p_instance text, p_base text, p_tag text, p_conflicts integer, p_clock double precision, p_refusal text
) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
  v_number bigint := slotkeeper_number(p_tag);
BEGIN
  IF h.tag = p_tag OR EXISTS (
    SELECT FROM slotkeeper_ring WHERE host = h.host AND ((place = v_number % 64 AND tag = p_tag) OR (place = (v_number + 1) % 64 AND base = p_tag))
  ) THEN
    RETURN '{"isOk":true,"now":' || p_clock || '}';
  END IF;
  IF p_refusal = 'conflict' AND p_conflicts + 1 >= 3 THEN
    UPDATE slotkeeper_host SET reserved_for = p_instance, reserved_until = p_clock + 50 WHERE host = h.host;
  END IF;
  RETURN slotkeeper_reply(h, p_base, p_clock, p_refusal);
END $$;

-- STABLE: tag, ring and records are read in one snapshot.
CREATE FUNCTION slotkeeper_read(p_schema integer, p_host text, p_since text) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET extra_float_digits = 1
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
  h slotkeeper_host;
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  SELECT * INTO h FROM slotkeeper_host WHERE host = p_host;
  IF NOT FOUND THEN RETURN slotkeeper_reply(NULL, NULL, greatest(slotkeeper_now(), (slotkeeper_unknown_host(p_host)).last_now)); END IF;
  RETURN slotkeeper_reply(h, p_since, greatest(slotkeeper_now(), h.last_now));
END $$;

-- Reports that an instance is alive; with 0 ms, that it stops. Returns the live instances, and which hosts of the
-- instance others have changed. p_echo: also notifies the instance itself, to test its listening connection.
CREATE FUNCTION slotkeeper_beat(
  p_schema integer, p_instance text, p_ttl_ms double precision, p_about jsonb, p_hosts text[], p_tags text[], p_echo boolean
) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '2s' SET extra_float_digits = 1 AS $$
DECLARE
  v_now double precision := slotkeeper_now();
  v_changed json;
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  IF p_ttl_ms > 0 THEN
    INSERT INTO slotkeeper_instance VALUES (p_instance, p_about, v_now, v_now + p_ttl_ms)
    ON CONFLICT (instance) DO UPDATE SET about = excluded.about, seen_at = excluded.seen_at, ends_at = excluded.ends_at;
  ELSE
    DELETE FROM slotkeeper_instance WHERE instance = p_instance;
  END IF;
  SELECT json_agg(b.host) INTO v_changed FROM unnest(p_hosts, p_tags) b (host, tag)
  LEFT JOIN slotkeeper_host h ON h.host = b.host WHERE h.tag IS DISTINCT FROM b.tag;
  IF p_echo THEN PERFORM pg_notify(slotkeeper_channel(p_instance), ''); END IF;
  RETURN json_build_object('now', v_now, 'instances', slotkeeper_instances(p_schema), 'changed', coalesce(v_changed, '[]'));
END $$;

CREATE FUNCTION slotkeeper_instances(p_schema integer) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET extra_float_digits = 1 AS $$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  RETURN coalesce((
    SELECT json_agg(json_build_object('instance', instance, 'seenAgoMs', greatest(0, v_now - seen_at), 'about', about) ORDER BY instance)
    FROM slotkeeper_instance WHERE ends_at > v_now), '[]');
END $$;

-- Hosts for operators, by key. Unknown hosts are missing in the result.
CREATE FUNCTION slotkeeper_peek(p_schema integer, p_hosts text[]) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET extra_float_digits = 1 AS $$
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  RETURN coalesce((
    SELECT json_object_agg(h.host, slotkeeper_book(h)) FROM unnest(p_hosts) asked (host) JOIN slotkeeper_host h USING (host)), '{}');
END $$;

CREATE FUNCTION slotkeeper_host_keys(p_schema integer) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  RETURN coalesce((SELECT json_agg(host ORDER BY host) FROM slotkeeper_host), '[]');
END $$;

-- StoreTotals of the store interface. Locks nothing, and reads each table once.
CREATE FUNCTION slotkeeper_totals(p_schema integer) RETURNS json
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET extra_float_digits = 1 SET jit = off AS $$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  RETURN (
    SELECT json_build_object(
      'hosts', count(*),
      -- JSON has no Infinity.
      'slots', nullif(coalesce(sum(h.slots), 0), 'Infinity'),
      'inFlight', (SELECT coalesce(sum(width), 0) FROM upstream_slot_pool WHERE ends_at > v_now)
        + (SELECT coalesce(sum((data ->> 'width')::integer), 0) FROM slotkeeper_record
           WHERE kind = 'offer' AND (data ->> 'lapsesAt')::double precision > v_now),
      'waiting', (SELECT count(*) FROM slotkeeper_record WHERE kind = 'waiter' AND (data ->> 'deadlineAt')::double precision > v_now),
      'open', count(*) FILTER (WHERE slotkeeper_breaker_closes_at(h.head) > v_now),
      'spaced', count(*) FILTER (WHERE slotkeeper_spaced_until(h.head, l.data) > v_now),
      'paused', count(*) FILTER (WHERE l.data #> '{live,isPaused}' IS NOT NULL))
    FROM slotkeeper_host h LEFT JOIN slotkeeper_record l ON l.host = h.host AND l.kind = 'limits' AND l.key = '');
END $$;

-- A breaker that opened an hour ago counts as closed, as in breaker.ts of packages/queue. NULL: it is not open.
CREATE FUNCTION slotkeeper_breaker_closes_at(p_head json) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$ SELECT (p_head #>> '{breaker,openedAt}')::double precision + 3600000 $$;

-- Until when the next release is delayed by spacing. p_limits: LimitsRecord, or NULL for a host that only direct callers
-- use. NULL: no spacing.
CREATE FUNCTION slotkeeper_spaced_until(p_head json, p_limits json) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
  SELECT (p_head ->> 'lastEndAt')::double precision + nullif((p_limits #>> '{policy,smoothMs}')::double precision, 0)
$$;

-- Forgets hosts without users, p_count at a time and in order. A host that is locked is in use. Returns the number of
-- forgotten hosts and the last host that was checked; null: there are no more.
CREATE FUNCTION slotkeeper_forget_hosts(p_schema integer, p_idle_ms double precision, p_after text, p_count integer) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '2s' AS $$
DECLARE
  h slotkeeper_host;
  v_host text;
  v_last text;
  v_gone integer := 0;
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  FOR v_host IN SELECT host FROM slotkeeper_host WHERE host > p_after ORDER BY host LIMIT p_count LOOP
    v_last := v_host;
    SELECT * INTO h FROM slotkeeper_host WHERE host = v_host FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND OR NOT slotkeeper_is_unused(h, p_idle_ms);
    PERFORM slotkeeper_forget(h);
    v_gone := v_gone + 1;
  END LOOP;
  RETURN json_build_object('hosts', v_gone, 'last', v_last);
END $$;

-- Until when the end of a session must be kept: endKeptUntil of session-ends.ts. p_ended_at NULL: not known.
CREATE FUNCTION slotkeeper_end_kept_until(p_deadline double precision, p_ended_at double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$ SELECT least(p_deadline + 10000, p_ended_at + 600000) $$;

-- Up to which time a host that is not known may have forgotten the ends of sessions: forgottenAtStart of session-ends.ts.
CREATE FUNCTION slotkeeper_start_forgotten(p_now double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$ SELECT p_now - 599000 $$;

-- Whether forgetting the host loses nothing: mayForget of packages/queue, for hosts without a commit for p_idle_ms.
CREATE FUNCTION slotkeeper_is_unused(h slotkeeper_host, p_idle_ms double precision) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  v_now double precision := slotkeeper_now();
  v_limits json;
BEGIN
  IF h.updated_at > v_now - p_idle_ms OR slotkeeper_occupied(h.host, v_now, h.offers_until) > 0 THEN RETURN false; END IF;
  SELECT data INTO v_limits FROM slotkeeper_record WHERE host = h.host AND kind = 'limits' AND key = '';
  RETURN v_limits -> 'live' IS NULL
    AND coalesce(slotkeeper_breaker_closes_at(h.head), 0) <= v_now
    AND coalesce((h.head #>> '{breaker,windowStartAt}')::double precision
      + coalesce((v_limits #>> '{policy,breaker,windowMs}')::double precision, 60000), 0) < v_now
    AND coalesce(slotkeeper_spaced_until(h.head, v_limits), 0) <= v_now
    AND coalesce((h.head ->> 'fullAt')::double precision, 0) <= v_now
    AND NOT EXISTS (SELECT FROM upstream_ip_cooldown c WHERE c.hostname_pattern = h.host AND c.cool_until > v_now)
    -- The ends of sessions. An expired lease also counts as the end of its session. A waiter is kept as long as its end
    -- would be: its instance may still end it, and would count it as begun again.
    AND coalesce((h.head ->> 'forgottenAt')::double precision, 0) <= slotkeeper_start_forgotten(v_now)
    AND NOT EXISTS (SELECT FROM upstream_slot_pool s WHERE s.hostname_pattern = h.host AND s.status = 'locked'
      AND slotkeeper_end_kept_until(s.keep_until, s.ends_at) > v_now)
    AND NOT EXISTS (
      SELECT FROM slotkeeper_record r WHERE r.host = h.host AND (
        (r.kind = 'waiter' AND slotkeeper_end_kept_until((r.data ->> 'deadlineAt')::double precision, NULL) > v_now)
        OR (r.kind = 'ending' AND slotkeeper_end_kept_until((r.data ->> 'keepUntil')::double precision,
          (r.data ->> 'endedAt')::double precision) > v_now)));
END $$;

-- Deletes rows that have expired and do not belong to the state of a host. Rows in use are skipped.
CREATE FUNCTION slotkeeper_forget_rows(p_schema integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '2s' AS $$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  DELETE FROM slotkeeper_instance
  WHERE instance IN (SELECT instance FROM slotkeeper_instance WHERE ends_at < v_now - 60000 FOR UPDATE SKIP LOCKED);
  DELETE FROM slotkeeper_floor
  WHERE ctid IN (SELECT ctid FROM slotkeeper_floor WHERE fence < slotkeeper_floor() FOR UPDATE SKIP LOCKED);
  DELETE FROM upstream_ip_cooldown WHERE (hostname_pattern, ip_hash) IN (
    SELECT hostname_pattern, ip_hash FROM upstream_ip_cooldown
    WHERE is_direct AND cool_until IS NULL AND extract(epoch FROM last_release_at) * 1000 <= v_now - 3600000
    FOR UPDATE SKIP LOCKED);
  DELETE FROM upstream_ip_queue_depth WHERE (hostname_pattern, ip_hash) IN (
    SELECT hostname_pattern, ip_hash FROM upstream_ip_queue_depth WHERE expires_at <= v_now FOR UPDATE SKIP LOCKED);
END $$;

-- The fleet's key for session tokens: the existing one, otherwise the given one.
CREATE FUNCTION slotkeeper_token_keys(p_schema integer, p_new_secret text) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '2s' AS $$
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  INSERT INTO slotkeeper_token_key VALUES (1, p_new_secret) ON CONFLICT DO NOTHING;
  RETURN (SELECT json_agg(secret) FROM slotkeeper_token_key);
END $$;

-- Raises an error if a commit could not be made: a different schema number, a database that cannot be written, a
-- function that the caller may not call, or a table, sequence or function that their owner may not use. Runs as the
-- caller, not as the owner. p_echoes: instances to notify, to test their listening connections.
CREATE FUNCTION slotkeeper_ready(p_schema integer, p_echoes text[]) RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  v_schema oid := quote_ident(current_schema())::regnamespace;
  v_missing text;
BEGIN
  PERFORM slotkeeper_check_schema(p_schema);
  IF pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' THEN
    RAISE read_only_sql_transaction USING MESSAGE = 'cannot write in a read-only transaction';
  END IF;
  SELECT string_agg(f.name, ', ' ORDER BY f.name) INTO v_missing FROM unnest(ARRAY['slotkeeper_commit', 'slotkeeper_commit_all', 'slotkeeper_read',
    'slotkeeper_beat', 'slotkeeper_instances', 'slotkeeper_peek', 'slotkeeper_host_keys', 'slotkeeper_totals',
    'slotkeeper_forget_hosts', 'slotkeeper_forget_rows', 'slotkeeper_token_keys', 'slotkeeper_channel']) f (name)
  LEFT JOIN pg_proc p ON p.pronamespace = v_schema AND p.proname = f.name
  WHERE p.oid IS NULL OR NOT has_function_privilege(p.oid, 'EXECUTE');
  IF v_missing IS NULL THEN v_missing := slotkeeper_missing_rights(v_schema); END IF;
  IF v_missing IS NOT NULL THEN RAISE insufficient_privilege USING MESSAGE = 'permission denied for ' || v_missing; END IF;
  PERFORM pg_notify(slotkeeper_channel(e.instance), '') FROM unnest(p_echoes) e (instance);
END $$;

-- What the store's functions use but their owner has no right to. NULL: nothing.
CREATE FUNCTION slotkeeper_missing_rights(p_schema oid) RETURNS text
LANGUAGE sql STABLE SET search_path FROM CURRENT AS $$
  WITH keeper AS (SELECT p.proowner AS id FROM pg_proc p WHERE p.oid = 'slotkeeper_commit'::regproc)
  SELECT string_agg(m.what, ', ') FROM (
    SELECT format('%s on table %I', r.name, t.relname) AS what
    FROM keeper, pg_class t, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) r (name)
    WHERE t.relnamespace = p_schema AND t.relkind = 'r' AND NOT has_table_privilege(keeper.id, t.oid, r.name)
      AND t.relname ~ '^(slotkeeper_(host|record|ring|floor|instance)|upstream_(slot_pool|ip_cooldown)|THROTTLE_PROTECTION)$'
    UNION ALL
    SELECT format('sequence %I', s.relname) FROM keeper, pg_class s
    WHERE s.relnamespace = p_schema AND s.relkind = 'S' AND s.relname ~ '^upstream_slot_pool_' AND NOT has_sequence_privilege(keeper.id, s.oid, 'USAGE')
    UNION ALL
    SELECT format('function %I', p.proname) FROM keeper, pg_proc p
    WHERE p.pronamespace = p_schema AND p.proname ~ '^slotkeeper_' AND NOT has_function_privilege(keeper.id, p.oid, 'EXECUTE')) m
$$;

REVOKE ALL ON FUNCTION slotkeeper_commit, slotkeeper_commit_all, slotkeeper_commit_locked, slotkeeper_refusal, slotkeeper_refuse, slotkeeper_read, slotkeeper_beat,
  slotkeeper_instances, slotkeeper_peek, slotkeeper_host_keys, slotkeeper_totals, slotkeeper_breaker_closes_at,
  slotkeeper_spaced_until, slotkeeper_end_kept_until, slotkeeper_start_forgotten, slotkeeper_forget_hosts, slotkeeper_is_unused, slotkeeper_forget_rows, slotkeeper_token_keys,
  slotkeeper_ready, slotkeeper_missing_rights FROM PUBLIC;
