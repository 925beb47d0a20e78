-- release, renew and withdraw of the port.
--
--   S2 a token is the only key to its lease: what was released, revoked, reclaimed or has run out is nobody's
--   S5 a released slot ends at its moment by the database's clock, whoever is alive
--   S8 released twice, the second time nothing happens

-- The row a token names, by its first part; NULL for what is no token of ours.
CREATE FUNCTION slotkeeper_token_row(p_token text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_token ~ '^[1-9][0-9]{0,8}\.[0-9a-f]{64}$' THEN split_part(p_token, '.', 1)::integer END
$$;

-- Where a token's lease is, or was until somebody settles it; NULL for a token that is nobody's. Locks nothing: a lease was
-- committed before its token was known, and a token that is gone stays gone.
CREATE FUNCTION slotkeeper_token_host(p_token text) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT hostname_pattern FROM upstream_slot_pool WHERE id = slotkeeper_token_row(p_token) AND token = p_token);
END $$;

-- The same for each of several releases.
CREATE FUNCTION slotkeeper_token_hosts(p_releases jsonb) RETURNS text[]
LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(
    SELECT p.hostname_pattern
    FROM ROWS FROM (jsonb_to_recordset(p_releases) AS (token text)) WITH ORDINALITY AS t (token, at)
    LEFT JOIN upstream_slot_pool p ON p.id = slotkeeper_token_row(t.token) AND p.token = t.token
    ORDER BY t.at
  );
END $$;

-- The lease a token still owns, of a host that is locked and settled.
CREATE FUNCTION slotkeeper_held(p_host text, p_token text) RETURNS upstream_slot_pool
LANGUAGE plpgsql AS $$
DECLARE
  v_slot upstream_slot_pool;
BEGIN
  SELECT * INTO v_slot FROM upstream_slot_pool
  WHERE id = slotkeeper_token_row(p_token) AND hostname_pattern = p_host AND token = p_token
    AND status = 'locked' AND NOT is_released;
  RETURN v_slot;
END $$;

-- When a released slot ends: max(hit + shortest hold, last end + spacing, now), at most one lease from now.
-- p_hit_ago_ms NULL: the upstream was not hit.
CREATE FUNCTION slotkeeper_end_of(h slotkeeper_host, p_hit_ago_ms double precision) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  p slotkeeper_policy := h.policy;
BEGIN
  RETURN least(h.touched_at + p.lease_ms, greatest(
    h.touched_at,
    h.touched_at - p_hit_ago_ms + p.min_hold_ms,
    CASE WHEN p.smooth_ms > 0 THEN h.last_end_at + p.smooth_ms END
  ));
END $$;

-- Starts or prolongs a bucket's cooldown; a longer one that runs is not cut short.
CREATE FUNCTION slotkeeper_cool_down(h slotkeeper_host, p_bucket text, p_from double precision) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_cooldown_ms double precision := (h.policy).cooldown_ms;
BEGIN
  IF v_cooldown_ms <= 0 OR p_bucket = '' THEN RETURN; END IF;
  INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at, cool_until)
  VALUES (h.host, p_bucket, to_timestamp(p_from / 1000), p_from + v_cooldown_ms)
  ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET
    last_release_at = greatest(c.last_release_at, excluded.last_release_at),
    cool_until = greatest(c.cool_until, excluded.cool_until);
END $$;

-- Gives back one slot, as a direct caller does: sets its end, and frees it if that is now.
CREATE FUNCTION slotkeeper_give_back(h slotkeeper_host, p_slot upstream_slot_pool, p_hit_ago_ms double precision)
RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  v_ends_at double precision := slotkeeper_end_of(h, p_hit_ago_ms);
BEGIN
  h.last_end_at := greatest(h.last_end_at, v_ends_at);
  PERFORM slotkeeper_cool_down(h, p_slot.ip_hash, v_ends_at);
  IF v_ends_at <= h.touched_at THEN RETURN slotkeeper_end_lease(h, p_slot, h.touched_at); END IF;
  UPDATE upstream_slot_pool SET is_released = true, ends_at = v_ends_at WHERE id = p_slot.id;
  h.next_end_at := least(h.next_end_at, v_ends_at);
  RETURN h;
END $$;

-- Several releases of a host: the slots their tokens own, the accounts those are on, what is freed, and the answers.
CREATE TYPE slotkeeper_returns AS (
  h slotkeeper_host,
  slots upstream_slot_pool[],
  buckets text[],
  accounts slotkeeper_account[],
  freed integer[],
  replies jsonb[]
);

CREATE FUNCTION slotkeeper_returns_load(h slotkeeper_host, p_releases jsonb) RETURNS slotkeeper_returns
LANGUAGE plpgsql AS $$
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
END $$;

-- The slot is free from now on, in memory; slotkeeper_returns_write writes it down.
CREATE FUNCTION slotkeeper_returns_free(r slotkeeper_returns, p_slot upstream_slot_pool) RETURNS slotkeeper_returns
LANGUAGE plpgsql AS $$
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
END $$;

-- The i-th release. It has happened when the same token comes again behind it.
CREATE FUNCTION slotkeeper_returns_one(
  r slotkeeper_returns, i integer, p_hit_ago_ms double precision, p_status integer, p_uncollected_by text
) RETURNS slotkeeper_returns
LANGUAGE plpgsql AS $$
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
    'isReleased', true, 'host', h.host, 'bucket', v_slot.ip_hash, 'endsInMs', v_ends_at - h.touched_at,
    'heldMs', h.touched_at - v_slot.granted_at);
  RETURN r;
END $$;

CREATE FUNCTION slotkeeper_returns_write(r slotkeeper_returns) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(r.freed) > 0 THEN
    PERFORM slotkeeper_free_rows(r.freed);
    UPDATE slotkeeper_account a SET in_flight = n.in_flight, used_ms = n.used_ms, as_of = n.as_of, demand = n.demand,
      contends = n.contends
    FROM unnest(r.accounts) n WHERE a.host = n.host AND a.bucket = n.bucket;
  END IF;
  PERFORM slotkeeper_close(r.h);
END $$;

-- Several releases of one host. p_host NULL: one release, whose host is the token's. A token of another host than p_host is
-- answered {"elsewhere": host} and left alone: this statement has not locked that host.
-- p_releases: [{token, hit_ago_ms, status, uncollected_by}]; p_policy NULL: the limits the host had last.
CREATE FUNCTION slotkeeper_release(p_host text, p_policy jsonb, p_releases jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
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
END $$;

-- The answers, with those filled in whose slots are somewhere else or nowhere.
CREATE FUNCTION slotkeeper_answer_elsewhere(p_hosts text[], p_replies jsonb[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_agg(coalesce(p_replies[at], CASE WHEN host IS NULL THEN '{"isReleased": false}'::jsonb
    ELSE jsonb_build_object('elsewhere', host) END) ORDER BY at)
  FROM unnest(p_hosts) WITH ORDINALITY AS t (host, at)
$$;

-- How long the lease lasts now; NULL once it is lost.
CREATE FUNCTION slotkeeper_renew(p_token text) RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
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
END $$;

CREATE TYPE slotkeeper_ended AS (h slotkeeper_host, freed text[]);

-- Ends one session: its place, and the lease it was granted meanwhile, whose bucket is added to what was freed. Only the
-- client's own word ('canceled') ends a session that another instance has by now.
CREATE FUNCTION slotkeeper_end_session(
  p_so_far slotkeeper_ended, p_session text, p_instance text, p_ending text, p_ttl_ms double precision
) RETURNS slotkeeper_ended
LANGUAGE plpgsql AS $$
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
END $$;

-- Ends sessions of one host. Returns the buckets whose slots that freed.
CREATE FUNCTION slotkeeper_withdraw(p_batch jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
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
END $$;
