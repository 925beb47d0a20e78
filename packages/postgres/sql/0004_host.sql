-- One host's row: locked, settled, changed, written back. Every call begins with slotkeeper_open or slotkeeper_find and
-- ends with slotkeeper_close.

-- How long a waiter counts without its instance having spoken for it.
CREATE FUNCTION slotkeeper_silence_ms() RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT 5000::double precision $$;

-- How long what became of a session is remembered past its deadline, for instances whose clocks differ. That a slow try grants
-- nothing twice does not rest on it: no instance grants past a deadline.
CREATE FUNCTION slotkeeper_grace_ms() RETURNS double precision LANGUAGE sql IMMUTABLE AS $$ SELECT 1000::double precision $$;

-- The shared bucket of callers without a name has neither limit nor cooldown of its own.
CREATE FUNCTION slotkeeper_bucket_limit(p slotkeeper_policy, p_bucket text) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$ SELECT CASE WHEN p_bucket = '' THEN 'Infinity' ELSE p.slots_per_bucket END $$;

-- Changes a bucket's account by one waiter or one slot. p_weight NULL: as it was, 1 for a new bucket.
CREATE FUNCTION slotkeeper_move(
  h slotkeeper_host, p_bucket text, p_weight double precision, p_waiting integer, p_held integer
) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  a slotkeeper_account;
  s slotkeeper_books;
BEGIN
  SELECT * INTO a FROM slotkeeper_account WHERE host = h.host AND bucket = p_bucket;
  IF NOT FOUND THEN a := slotkeeper_new_account(h.host, p_bucket, coalesce(p_weight, 1), (h.ledger).as_of); END IF;
  s := ROW(h.ledger, a)::slotkeeper_books;
  s := slotkeeper_shift(s, p_waiting, p_held, coalesce(p_weight, a.weight), slotkeeper_bucket_limit(h.policy, p_bucket));
  a := s.account;
  IF a.in_flight < 0 OR a.waiting < 0 THEN
    RAISE EXCEPTION 'The account of a bucket of host % would fall below zero', h.host USING ERRCODE = 'data_corrupted';
  END IF;
  INSERT INTO slotkeeper_account VALUES (a.*)
  ON CONFLICT (host, bucket) DO UPDATE SET weight = a.weight, in_flight = a.in_flight, waiting = a.waiting,
    used_ms = a.used_ms, as_of = a.as_of, demand = a.demand, contends = a.contends;
  h.ledger := s.ledger;
  -- A named semaphore's capacity goes with its last user.
  IF (h.ledger).in_flight = 0 AND (h.ledger).waiting = 0 THEN h.capacity := NULL; END IF;
  RETURN h;
END $$;

-- Rows of slots that nobody has any more.
CREATE FUNCTION slotkeeper_free_rows(p_ids integer[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE upstream_slot_pool SET status = 'available', ip_hash = NULL, locked_at = NULL, token = NULL, fence = NULL,
    session = NULL, instance = NULL, granted_by = NULL, granted_at = NULL, ends_at = NULL,
    is_released = false, is_probe = false, is_shared = false
  WHERE id = ANY (p_ids);
END $$;

-- Frees a slot at an instant: now, or the lease's own end.
CREATE FUNCTION slotkeeper_end_lease(h slotkeeper_host, p_slot upstream_slot_pool, p_at double precision)
RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
BEGIN
  h.ledger := slotkeeper_advance(h.ledger, p_at);
  PERFORM slotkeeper_free_rows(ARRAY[p_slot.id]);
  IF p_slot.is_probe THEN h.probes := h.probes - 1; END IF;
  RETURN slotkeeper_move(h, coalesce(p_slot.ip_hash, ''), NULL, 0, -1);
END $$;

-- Ends what time has ended: leases each at its own moment, in order, so that use and meter are exact however late anybody
-- looks; then waiters that nobody speaks for. Costs nothing when nothing is due.
CREATE FUNCTION slotkeeper_settle(h slotkeeper_host, p_now double precision) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  r_slot upstream_slot_pool;
  v_bucket text;
BEGIN
  IF h.next_end_at <= p_now THEN
    FOR r_slot IN
      SELECT * FROM upstream_slot_pool
      WHERE hostname_pattern = h.host AND status = 'locked' AND ends_at <= p_now ORDER BY ends_at, fence
    LOOP
      h := slotkeeper_end_lease(h, r_slot, r_slot.ends_at);
      IF NOT r_slot.is_released THEN h.reclaimed := h.reclaimed + 1; END IF;
    END LOOP;
    h.next_end_at := slotkeeper_first_end(h.host, NULL);
  END IF;
  h.ledger := slotkeeper_advance(h.ledger, p_now);
  IF h.next_silent_at <= p_now THEN
    FOR v_bucket IN
      SELECT bucket FROM slotkeeper_waiter
      WHERE host = h.host AND seen_at < p_now - slotkeeper_silence_ms() ORDER BY seen_at, arrived_at
    LOOP
      h := slotkeeper_move(h, v_bucket, NULL, -1, 0);
    END LOOP;
    DELETE FROM slotkeeper_waiter WHERE host = h.host AND seen_at < p_now - slotkeeper_silence_ms();
    SELECT coalesce(min(seen_at) + slotkeeper_silence_ms(), 'Infinity') INTO h.next_silent_at
    FROM slotkeeper_waiter WHERE host = h.host;
  END IF;
  RETURN h;
END $$;

-- When the first lease ends, of the host or of one of its buckets; Infinity without any.
CREATE FUNCTION slotkeeper_first_end(p_host text, p_bucket text) RETURNS double precision
LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce((
    SELECT min(ends_at) FROM upstream_slot_pool
    WHERE hostname_pattern = p_host AND status = 'locked' AND (p_bucket IS NULL OR ip_hash = p_bucket)
  ), 'Infinity');
END $$;

-- What users fixed wins over what an operator set, and that over what the instance brought.
CREATE FUNCTION slotkeeper_adopt(h slotkeeper_host, p slotkeeper_policy) RETURNS slotkeeper_host
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  l slotkeeper_ledger := h.ledger;
BEGIN
  p.slots := coalesce(h.capacity, h.live_slots, p.slots);
  p.slots_per_bucket := coalesce(h.live_slots_per_bucket, p.slots_per_bucket);
  h.policy := p;
  l.slots := p.slots;
  h.ledger := l;
  RETURN h;
END $$;

-- A known host, locked and settled; NULL for one that nobody knows.
CREATE FUNCTION slotkeeper_find(p_host text) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host;
BEGIN
  SELECT * INTO h FROM slotkeeper_host WHERE host = p_host FOR NO KEY UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  h.touched_at := slotkeeper_now();
  RETURN slotkeeper_settle(h, h.touched_at);
END $$;

-- A host, locked and settled, with these limits in force; made if there is none. A new host's fences start at the time, in
-- microseconds, and above those of any host that was forgotten, should the clock have been set back since.
CREATE FUNCTION slotkeeper_open(p_host text, p_policy slotkeeper_policy) RETURNS slotkeeper_host
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := slotkeeper_find(p_host);
  v_now double precision;
BEGIN
  WHILE h.host IS NULL LOOP
    v_now := slotkeeper_now();
    INSERT INTO slotkeeper_host (host, ledger, policy, fence, touched_at)
    SELECT p_host, ROW(p_policy.slots, 0, v_now, 0, 0, 0, 0, 0, 0)::slotkeeper_ledger, p_policy,
      greatest(floor(v_now * 1000)::bigint, f.fence), v_now
    FROM slotkeeper_fence_floor f WHERE f.id = 1
    ON CONFLICT DO NOTHING;
    h := slotkeeper_find(p_host);
  END LOOP;
  RETURN slotkeeper_adopt(h, p_policy);
END $$;

CREATE FUNCTION slotkeeper_close(h slotkeeper_host) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE slotkeeper_host SET ledger = h.ledger, policy = h.policy, capacity = h.capacity, live_slots = h.live_slots,
    live_slots_per_bucket = h.live_slots_per_bucket, fence = h.fence, probes = h.probes, reclaimed = h.reclaimed, last_end_at = h.last_end_at,
    next_end_at = h.next_end_at, next_silent_at = h.next_silent_at, direct_waiting = h.direct_waiting,
    touched_at = h.touched_at
  WHERE host = h.host;
END $$;

-- Waiters that direct callers counted and that count still, of the host or of one of its buckets.
CREATE FUNCTION slotkeeper_direct_waiting(h slotkeeper_host, p_bucket text DEFAULT NULL) RETURNS integer
LANGUAGE plpgsql AS $$
BEGIN
  IF h.direct_waiting <= 0 THEN RETURN 0; END IF;
  RETURN (
    SELECT coalesce(sum(waiting_count), 0) FROM upstream_ip_queue_depth
    WHERE hostname_pattern = h.host AND expires_at > h.touched_at AND (p_bucket IS NULL OR ip_hash = p_bucket)
  );
END $$;
