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
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (SELECT hostname_pattern FROM upstream_slot_pool WHERE id = slotkeeper_token_row(p_token) AND token = p_token);
END $$;

-- The lease a token still owns, of a host that is locked and settled.
CREATE FUNCTION slotkeeper_held(p_host text, p_token text) RETURNS upstream_slot_pool
LANGUAGE plpgsql STABLE AS $$
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

-- Releases a slot as of an instant, now or later, and lets its bucket cool down from there. Frees it if that is now.
CREATE FUNCTION slotkeeper_give_back(h slotkeeper_host, p_slot upstream_slot_pool, p_ends_at double precision)
RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  v_cooldown_ms double precision := (h.policy).cooldown_ms;
BEGIN
  h.last_end_at := greatest(h.last_end_at, p_ends_at);
  IF v_cooldown_ms > 0 AND p_slot.ip_hash <> '' THEN
    INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at, cool_until)
    VALUES (h.host, p_slot.ip_hash, to_timestamp(p_ends_at / 1000), p_ends_at + v_cooldown_ms)
    ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET
      last_release_at = greatest(c.last_release_at, excluded.last_release_at),
      cool_until = greatest(c.cool_until, excluded.cool_until);
  END IF;
  IF p_ends_at <= h.touched_at THEN RETURN slotkeeper_end_lease(h, p_slot, h.touched_at); END IF;
  UPDATE upstream_slot_pool SET is_released = true, ends_at = p_ends_at WHERE id = p_slot.id;
  h.next_end_at := least(h.next_end_at, p_ends_at);
  RETURN h;
END $$;

-- One release of a host that is locked and settled, and its answer.
CREATE TYPE slotkeeper_released AS (h slotkeeper_host, reply jsonb);
CREATE FUNCTION slotkeeper_release_one(
  h slotkeeper_host, p_token text, p_hit_ago_ms double precision, p_status integer, p_uncollected_by text
) RETURNS slotkeeper_released
LANGUAGE plpgsql AS $$
DECLARE
  v_slot upstream_slot_pool := slotkeeper_held(h.host, p_token);
  v_ends_at double precision := h.touched_at;
BEGIN
  -- News of the upstream, even when the slot it came with is lost.
  IF p_status IS NOT NULL THEN
    PERFORM slotkeeper_breaker_report(h.host, h.policy, p_status, coalesce(v_slot.is_probe, false), h.touched_at);
  END IF;
  -- Uncollected: as if it had never been granted, unless somebody else was told of it.
  IF v_slot.id IS NULL OR (p_uncollected_by IS NOT NULL AND (v_slot.is_shared OR v_slot.instance <> p_uncollected_by)) THEN
    RETURN ROW(h, '{"isReleased": false}'::jsonb)::slotkeeper_released;
  END IF;
  IF p_uncollected_by IS NULL THEN
    v_ends_at := slotkeeper_end_of(h, p_hit_ago_ms);
    h := slotkeeper_give_back(h, v_slot, v_ends_at);
  ELSE
    DELETE FROM slotkeeper_session WHERE host = h.host AND session = v_slot.session;
    h := slotkeeper_end_lease(h, v_slot, h.touched_at);
  END IF;
  RETURN ROW(h, jsonb_build_object(
    'isReleased', true, 'host', h.host, 'bucket', v_slot.ip_hash, 'endsInMs', v_ends_at - h.touched_at
  ))::slotkeeper_released;
END $$;

-- Several releases of one host. p_host NULL: one release, whose host is the token's. A token of another host than p_host is
-- answered {"elsewhere": host} and left alone: this statement has not locked that host.
-- p_releases: [{token, hit_ago_ms, status, uncollected_by}]; p_policy NULL: the limits the host had last.
CREATE FUNCTION slotkeeper_release(p_host text, p_policy jsonb, p_releases jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  v_host text := coalesce(p_host, slotkeeper_token_host(p_releases -> 0 ->> 'token'));
  v_released slotkeeper_released;
  v_replies jsonb[];
  v_other text;
  r record;
BEGIN
  FOR r IN SELECT * FROM jsonb_to_recordset(p_releases)
    AS t (token text, hit_ago_ms double precision, status integer, uncollected_by text)
  LOOP
    v_other := slotkeeper_token_host(r.token);
    IF v_other <> v_host THEN
      v_released.reply := jsonb_build_object('elsewhere', v_other);
    ELSIF v_host IS NULL OR (v_other IS NULL AND (r.status IS NULL OR p_policy IS NULL)) THEN
      v_released.reply := '{"isReleased": false}';
    ELSE
      IF v_released.h IS NULL THEN
        v_released.h := CASE WHEN p_policy IS NULL THEN slotkeeper_find(v_host)
          ELSE slotkeeper_open(v_host, jsonb_populate_record(NULL::slotkeeper_policy, p_policy)) END;
      END IF;
      v_released := slotkeeper_release_one(v_released.h, r.token, r.hit_ago_ms, r.status, r.uncollected_by);
    END IF;
    v_replies := v_replies || v_released.reply;
  END LOOP;
  IF (v_released.h).host IS NOT NULL THEN PERFORM slotkeeper_close(v_released.h); END IF;
  RETURN to_jsonb(v_replies);
END $$;

-- How long the lease lasts now; NULL once it is lost.
CREATE FUNCTION slotkeeper_renew(p_token text) RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
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
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $$
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
