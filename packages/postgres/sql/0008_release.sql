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

-- max(hit + shortest hold, last end + spacing, now), at most one lease from now; then the bucket cools down. Frees the slot
-- if that is now. p_hit_ago_ms NULL: the upstream was not hit.
CREATE FUNCTION slotkeeper_give_back(h slotkeeper_host, p_slot upstream_slot_pool, p_hit_ago_ms double precision)
RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  p slotkeeper_policy := h.policy;
  v_now double precision := h.touched_at;
  v_ends_at double precision := least(v_now + p.lease_ms, greatest(
    v_now,
    v_now - p_hit_ago_ms + p.min_hold_ms,
    CASE WHEN p.smooth_ms > 0 THEN h.last_end_at + p.smooth_ms END
  ));
BEGIN
  h.last_end_at := greatest(h.last_end_at, v_ends_at);
  IF p.cooldown_ms > 0 AND p_slot.ip_hash <> '' THEN
    INSERT INTO upstream_ip_cooldown AS c (hostname_pattern, ip_hash, last_release_at, cool_until)
    VALUES (h.host, p_slot.ip_hash, to_timestamp(v_ends_at / 1000), v_ends_at + p.cooldown_ms)
    ON CONFLICT (hostname_pattern, ip_hash) DO UPDATE SET
      last_release_at = greatest(c.last_release_at, excluded.last_release_at),
      cool_until = greatest(c.cool_until, excluded.cool_until);
  END IF;
  IF v_ends_at <= v_now THEN RETURN slotkeeper_end_lease(h, p_slot, v_now); END IF;
  UPDATE upstream_slot_pool SET is_released = true, ends_at = v_ends_at WHERE id = p_slot.id;
  h.next_end_at := least(h.next_end_at, v_ends_at);
  RETURN h;
END $$;

-- Several releases of one host. p_host NULL: one release, whose host is the token's. A token of another host than p_host is
-- answered {"elsewhere": host} and left alone: this statement has not locked that host.
-- p_releases: [{token, hit_ago_ms, status, uncollected_by}]; p_policy NULL: the limits the host had last.
CREATE FUNCTION slotkeeper_release(p_host text, p_policy jsonb, p_releases jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' AS $$
DECLARE
  h slotkeeper_host;
  v_host text := coalesce(p_host, (
    SELECT hostname_pattern FROM upstream_slot_pool WHERE id = slotkeeper_token_row(p_releases -> 0 ->> 'token')
  ));
  v_replies jsonb := '[]';
  r record;
  v_other text;
  v_slot upstream_slot_pool;
BEGIN
  h := CASE WHEN p_policy IS NULL THEN slotkeeper_find(v_host)
    ELSE slotkeeper_open(v_host, jsonb_populate_record(NULL::slotkeeper_policy, p_policy)) END;
  IF h.host IS NULL THEN RETURN (SELECT jsonb_agg('{"isReleased": false}'::jsonb) FROM jsonb_array_elements(p_releases)); END IF;
  FOR r IN SELECT * FROM jsonb_to_recordset(p_releases)
    AS t (token text, hit_ago_ms double precision, status integer, uncollected_by text)
  LOOP
    v_slot := slotkeeper_held(h.host, r.token);
    IF v_slot.id IS NULL THEN
      SELECT hostname_pattern INTO v_other FROM upstream_slot_pool
      WHERE id = slotkeeper_token_row(r.token) AND token = r.token AND hostname_pattern <> h.host;
      IF FOUND THEN
        v_replies := v_replies || jsonb_build_object('elsewhere', v_other);
        CONTINUE;
      END IF;
    END IF;
    -- News of the upstream, even when the slot it came with is lost.
    IF r.status IS NOT NULL THEN
      PERFORM slotkeeper_breaker_report(h.host, h.policy, r.status, coalesce(v_slot.is_probe, false), h.touched_at);
    END IF;
    IF v_slot.id IS NULL OR (r.uncollected_by IS NOT NULL AND (v_slot.is_shared OR v_slot.instance <> r.uncollected_by)) THEN
      v_replies := v_replies || '{"isReleased": false}'::jsonb;
      CONTINUE;
    END IF;
    IF r.uncollected_by IS NULL THEN
      h := slotkeeper_give_back(h, v_slot, r.hit_ago_ms);
    ELSE
      DELETE FROM slotkeeper_session WHERE host = h.host AND session = v_slot.session;
      h := slotkeeper_end_lease(h, v_slot, h.touched_at);
    END IF;
    v_replies := v_replies || jsonb_build_object('isReleased', true, 'host', h.host, 'bucket', v_slot.ip_hash, 'endsInMs',
      coalesce((SELECT ends_at - h.touched_at FROM upstream_slot_pool WHERE id = v_slot.id AND is_released), 0));
  END LOOP;
  PERFORM slotkeeper_close(h);
  RETURN v_replies;
END $$;

-- How long the lease lasts now; NULL once it is lost.
CREATE FUNCTION slotkeeper_renew(p_token text) RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' AS $$
DECLARE
  h slotkeeper_host := slotkeeper_find((SELECT hostname_pattern FROM upstream_slot_pool WHERE id = slotkeeper_token_row(p_token)));
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
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' AS $$
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
