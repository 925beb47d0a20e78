-- checkThrottle, report, operate, snapshot and cleanup of the port, and the keys that sign session tokens.

-- The breaker, and the capacity that live users of a named semaphore fixed. Locks nothing.
CREATE FUNCTION slotkeeper_check_throttle(p_host text, p_open_ms double precision) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'breaker', slotkeeper_breaker_view(slotkeeper_breaker_read(p_host, v_now, p_open_ms), v_now),
    'capacity', (
      SELECT capacity FROM slotkeeper_host WHERE host = p_host AND capacity IS NOT NULL AND (
        EXISTS (SELECT FROM upstream_slot_pool WHERE hostname_pattern = p_host AND status = 'locked' AND ends_at > v_now)
        OR EXISTS (SELECT FROM slotkeeper_waiter WHERE host = p_host AND seen_at >= v_now - slotkeeper_silence_ms()))
    )
  ));
END $$;

CREATE FUNCTION slotkeeper_report(p_host text, p_policy jsonb, p_status integer) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  h slotkeeper_host := slotkeeper_open(p_host, jsonb_populate_record(NULL::slotkeeper_policy, p_policy));
BEGIN
  PERFORM slotkeeper_breaker_report(h.host, h.policy, p_status, false, h.touched_at);
  PERFORM slotkeeper_close(h);
  RETURN slotkeeper_breaker_view(slotkeeper_breaker_read(h.host, h.touched_at, (h.policy).breaker_open_ms), h.touched_at);
END $$;

-- Live limits; both NULL lift them.
CREATE FUNCTION slotkeeper_set_limits(
  p_host text, p_policy jsonb, p_slots double precision, p_slots_per_bucket double precision
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  v_policy slotkeeper_policy := jsonb_populate_record(NULL::slotkeeper_policy, p_policy);
  h slotkeeper_host := slotkeeper_open(p_host, v_policy);
BEGIN
  h.live_slots := p_slots;
  h.live_slots_per_bucket := p_slots_per_bucket;
  PERFORM slotkeeper_close(slotkeeper_adopt(h, v_policy));
END $$;

CREATE FUNCTION slotkeeper_set_breaker(p_host text, p_policy jsonb, p_is_open boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  h slotkeeper_host := slotkeeper_open(p_host, jsonb_populate_record(NULL::slotkeeper_policy, p_policy));
BEGIN
  PERFORM slotkeeper_breaker_write(h.host,
    CASE WHEN p_is_open THEN slotkeeper_breaker_opened(0, h.touched_at) ELSE slotkeeper_breaker_closed() END);
  PERFORM slotkeeper_close(h);
END $$;

-- Ends the lease with this fence at once. Returns its host and bucket; NULL if there is none, or, though fences are
-- counted from microseconds, more than one: an operator's word must not hit a stranger.
CREATE FUNCTION slotkeeper_revoke(p_fence bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  v_hosts text[] := ARRAY(SELECT hostname_pattern FROM upstream_slot_pool WHERE fence = p_fence AND NOT is_released LIMIT 2);
  h slotkeeper_host;
  v_slot upstream_slot_pool;
BEGIN
  IF cardinality(v_hosts) <> 1 THEN RETURN NULL; END IF;
  h := slotkeeper_find(v_hosts[1]);
  SELECT * INTO v_slot FROM upstream_slot_pool
  WHERE hostname_pattern = h.host AND fence = p_fence AND status = 'locked' AND NOT is_released;
  IF FOUND THEN h := slotkeeper_end_lease(h, v_slot, h.touched_at); END IF;
  PERFORM slotkeeper_close(h);
  RETURN CASE WHEN v_slot.id IS NOT NULL THEN jsonb_build_object('host', h.host, 'bucket', v_slot.ip_hash) END;
END $$;

-- StoreSnapshot of the port, of these hosts or of all. Reads and changes nothing: what time has ended is left out, not
-- ended. No token in it.
CREATE FUNCTION slotkeeper_snapshot(p_hosts jsonb DEFAULT NULL) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  RETURN jsonb_build_object(
    'sessions', (SELECT count(*) FROM slotkeeper_session),
    'hosts', coalesce((SELECT jsonb_agg(slotkeeper_snapshot_host(h, v_now) ORDER BY h.host) FROM slotkeeper_host h
      WHERE p_hosts IS NULL OR h.host = ANY (ARRAY(SELECT jsonb_array_elements_text(p_hosts)))), '[]')
  );
END $$;

CREATE FUNCTION slotkeeper_snapshot_host(h slotkeeper_host, p_now double precision) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
  l slotkeeper_ledger := slotkeeper_advance(h.ledger, p_now);
BEGIN
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'host', h.host,
    'slots', (h.policy).slots,
    'inFlight', (
      SELECT count(*) FROM upstream_slot_pool WHERE hostname_pattern = h.host AND status = 'locked' AND ends_at > p_now),
    'waiting', l.waiting,
    'progress', l.progress,
    'breaker', slotkeeper_breaker_view(slotkeeper_breaker_read(h.host, p_now, (h.policy).breaker_open_ms), p_now),
    'live', CASE WHEN coalesce(h.live_slots, h.live_slots_per_bucket) IS NOT NULL THEN
      jsonb_build_object('slots', h.live_slots, 'slotsPerBucket', h.live_slots_per_bucket) END,
    'buckets', coalesce((
      SELECT jsonb_agg(jsonb_build_object('bucket', a.bucket, 'inFlight', a.in_flight, 'waiting', a.waiting,
        'weight', a.weight, 'usedMs', slotkeeper_used(l, a, a.weight, p_now)) ORDER BY a.bucket)
      FROM slotkeeper_account a
      WHERE a.host = h.host AND (a.in_flight + a.waiting > 0 OR NOT slotkeeper_is_passed(l, a))), '[]'),
    'leases', coalesce((
      SELECT jsonb_agg(jsonb_build_object('slot', p.fence, 'session', coalesce(p.session, ''),
        'bucket', coalesce(p.ip_hash, ''), 'endsInMs', p.ends_at - p_now, 'heldMs', p_now - p.granted_at, 'isReleased', p.is_released,
        'isProbe', p.is_probe) ORDER BY p.slot_index)
      FROM upstream_slot_pool p
      WHERE p.hostname_pattern = h.host AND p.status = 'locked' AND p.ends_at > p_now), '[]')
  ));
END $$;

-- Nothing would be lost by forgetting it, but for fairness towards a bucket that was ahead before everybody left.
CREATE FUNCTION slotkeeper_is_forgettable(h slotkeeper_host) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  p slotkeeper_policy := h.policy;
  v_now double precision := slotkeeper_now();
BEGIN
  RETURN (h.ledger).in_flight = 0 AND (h.ledger).waiting = 0 AND h.live_slots IS NULL AND h.live_slots_per_bucket IS NULL
    AND h.last_end_at + p.smooth_ms <= v_now
    AND NOT EXISTS (SELECT FROM upstream_ip_cooldown WHERE hostname_pattern = h.host)
    AND NOT EXISTS (SELECT FROM upstream_ip_queue_depth WHERE hostname_pattern = h.host)
    AND NOT EXISTS (SELECT FROM slotkeeper_session WHERE host = h.host)
    AND NOT EXISTS (
      SELECT FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = h.host AND (opened_at > v_now - 2 * p.breaker_open_ms
        OR window_start_at >= v_now - p.breaker_window_ms));
END $$;

-- Takes away the traces of a host, but for its fence, which the next host of that name starts above.
CREATE FUNCTION slotkeeper_forget_host(p_host text, p_fence bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM slotkeeper_account WHERE host = p_host;
  DELETE FROM upstream_slot_pool WHERE hostname_pattern = p_host;
  DELETE FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = p_host;
  DELETE FROM slotkeeper_host WHERE host = p_host;
  UPDATE slotkeeper_fence_floor SET fence = p_fence WHERE id = 1 AND fence < p_fence;
END $$;

-- Settles the next p_count hosts after p_after, forgets what nobody needs, and tells how far it got. A host that is locked
-- is in use and settles itself: nobody waits for the sweep, and it waits for nobody.
CREATE FUNCTION slotkeeper_sweep(p_after text, p_count integer, p_idle_ms double precision, p_reset_smoothing boolean)
RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  h slotkeeper_host;
  v_last text;
  v_before slotkeeper_ledger;
  v_slots integer := 0;
  v_waiters integer := 0;
  v_sessions integer := 0;
  v_reclaimed integer := 0;
BEGIN
  FOR h IN SELECT * FROM slotkeeper_host WHERE host > p_after ORDER BY host LIMIT p_count LOOP
    v_last := h.host;
    SELECT * INTO h FROM slotkeeper_host WHERE host = v_last FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    v_before := h.ledger;
    h := slotkeeper_settle(h, slotkeeper_now());
    v_slots := v_slots + v_before.in_flight - (h.ledger).in_flight;
    v_reclaimed := v_reclaimed + h.reclaimed;
    h.reclaimed := 0;
    v_waiters := v_waiters + v_before.waiting - (h.ledger).waiting;
    v_sessions := v_sessions + slotkeeper_forget_sessions(h.host, (h.ledger).as_of, 10000);
    IF p_reset_smoothing THEN h.last_end_at := '-Infinity'; END IF;
    IF h.touched_at + p_idle_ms <= (h.ledger).as_of AND slotkeeper_is_forgettable(h) THEN
      PERFORM slotkeeper_forget_host(h.host, h.fence);
      CONTINUE;
    END IF;
    DELETE FROM slotkeeper_account a WHERE a.host = h.host AND a.in_flight = 0 AND a.waiting = 0
      AND slotkeeper_is_passed(h.ledger, a);
    DELETE FROM upstream_slot_pool WHERE hostname_pattern = h.host AND status <> 'locked' AND slot_index > (h.policy).slots;
    PERFORM slotkeeper_close(h);
  END LOOP;
  RETURN jsonb_build_object('slots', v_slots, 'waiters', v_waiters, 'sessions', v_sessions,
    'reclaimed', v_reclaimed, 'last', v_last);
END $$;

-- Cooldowns that are over. Counts are those of the service: direct callers' rows have a function of their own.
CREATE FUNCTION slotkeeper_sweep_cooldowns() RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_cooldown WHERE cool_until <= slotkeeper_now();
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;

-- Waiters that direct callers counted, and counted no more for so long.
CREATE FUNCTION slotkeeper_sweep_depth(p_ttl_ms double precision) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
DECLARE
  v_gone integer;
BEGIN
  DELETE FROM upstream_ip_queue_depth
  WHERE expires_at <= slotkeeper_now() AND extract(epoch FROM updated_at) * 1000 <= slotkeeper_now() - p_ttl_ms;
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;

-- The keys that sign session tokens: made by the first who asks, the same for all ever after.
CREATE FUNCTION slotkeeper_token_keys(p_new_secret text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
BEGIN
  INSERT INTO slotkeeper_token_key VALUES (1, p_new_secret) ON CONFLICT DO NOTHING;
  RETURN (SELECT jsonb_agg(secret) FROM slotkeeper_token_key);
END $$;

-- Whether a grant could be written down: not on a standby.
CREATE FUNCTION slotkeeper_ready() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
BEGIN
  RETURN NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off';
END $$;

-- Nothing is for PUBLIC, which PostgreSQL grants every new function to.
DO $$
DECLARE
  v_function regprocedure;
BEGIN
  FOR v_function IN SELECT oid FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname LIKE 'slotkeeper\_%' LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', v_function);
  END LOOP;
END $$;
