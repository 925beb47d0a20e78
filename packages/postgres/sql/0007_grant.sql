-- Layer seven of the funnel for one batch: hands out the free slots of a host, best-ranked first, each grant counted before
-- the next is decided. A bucket at its limit or in cooldown is skipped whole and keeps nobody waiting.

-- Slots to give out: free rows, and new ones where the limit has grown past them. Takes sequence numbers for rows only.
CREATE FUNCTION slotkeeper_free_slots(p_host text, p_count integer) RETURNS integer[]
LANGUAGE plpgsql AS $$
DECLARE
  v_ids integer[] := ARRAY(
    SELECT id FROM upstream_slot_pool WHERE hostname_pattern = p_host AND status <> 'locked' ORDER BY slot_index LIMIT p_count
  );
  v_missing integer := p_count - cardinality(v_ids);
BEGIN
  IF v_missing = 0 THEN RETURN v_ids; END IF;
  WITH added AS (
    INSERT INTO upstream_slot_pool (hostname_pattern, slot_index)
    SELECT p_host, g FROM generate_series(1, p_count + (
      SELECT count(*)::integer FROM upstream_slot_pool WHERE hostname_pattern = p_host
    )) g
    WHERE NOT EXISTS (SELECT FROM upstream_slot_pool WHERE hostname_pattern = p_host AND slot_index = g)
    ORDER BY g LIMIT v_missing
    RETURNING id
  )
  SELECT v_ids || array_agg(id) INTO v_ids FROM added;
  RETURN v_ids;
END $$;

-- Unguessable, and bound to its row: '<id>.' and 244 random bits.
CREATE FUNCTION slotkeeper_new_token(p_id integer) RETURNS text
LANGUAGE sql VOLATILE AS $$
  SELECT p_id || '.' || replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
$$;

-- What the store says to one waiter that stands for a free slot: WAIT, IP_TOO_MANY, or ACQUIRED, still to be given.
CREATE FUNCTION slotkeeper_answer(r slotkeeper_round, e slotkeeper_entry) RETURNS slotkeeper_entry
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  p slotkeeper_policy := h.policy;
BEGIN
  -- Still open for this session's own window was answered when it was admitted: what is left of an open one is half open.
  e.is_probe := (r.breaker).opened_at IS NOT NULL;
  IF e.is_probe AND h.probes >= p.breaker_probes THEN
    e.status := 'WAIT';
    e.blocked_by := 'breaker';
  ELSIF (r.accounts[e.account_no]).in_flight >= slotkeeper_bucket_limit(p, e.bucket) THEN
    e.status := 'IP_TOO_MANY';
    e.blocked_by := 'ip-limit';
    e.retry_in_ms := least(
      slotkeeper_first_end(h.host, e.bucket),
      (SELECT min(g.ends_at) FROM unnest(r.entries) g WHERE g.is_granted AND g.bucket = e.bucket)
    ) - h.touched_at;
  ELSIF e.cool_until > h.touched_at AND e.bucket <> '' THEN
    e.status := 'IP_TOO_MANY';
    e.blocked_by := 'cooldown';
    e.retry_in_ms := e.cool_until - h.touched_at;
  ELSE
    e.status := 'ACQUIRED';
  END IF;
  RETURN e;
END $$;

-- Decides about waiter i, and gives it the slot if it may have one.
CREATE FUNCTION slotkeeper_serve(r slotkeeper_round, i integer) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host;
  e slotkeeper_entry := slotkeeper_answer(r, r.entries[i]);
  s slotkeeper_books;
  v_limit double precision;
BEGIN
  IF e.status = 'ACQUIRED' THEN
    h := r.h;
    v_limit := slotkeeper_bucket_limit(h.policy, e.bucket);
    s := ROW(h.ledger, r.accounts[e.account_no])::slotkeeper_books;
    s := slotkeeper_shift(s, 0, 1, e.weight, v_limit);
    s := slotkeeper_shift(s, -1, 0, e.weight, v_limit);
    r.accounts[e.account_no] := s.account;
    h.ledger := s.ledger;
    h.fence := h.fence + 1;
    IF e.is_probe THEN h.probes := h.probes + 1; END IF;
    e.is_granted := true;
    r.granted := r.granted + 1;
    e.slot_id := r.slots[r.granted];
    e.token := slotkeeper_new_token(e.slot_id);
    e.fence := h.fence;
    e.ends_at := h.touched_at + least((h.policy).lease_ms, (h.policy).max_hold_ms);
    r.h := h;
  END IF;
  r.entries[i] := e;
  RETURN r;
END $$;

-- As given: the weighted scheduler of the instance has chosen.
CREATE FUNCTION slotkeeper_grant_given(r slotkeeper_round) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    EXIT WHEN ((r.h).policy).slots <= ((r.h).ledger).in_flight;
    IF (r.entries[i]).status IS NULL THEN r := slotkeeper_serve(r, i); END IF;
  END LOOP;
  RETURN r;
END $$;

-- The best-ranked bucket's oldest waiter among those of the batch that stand; NULL when none does.
CREATE FUNCTION slotkeeper_best(r slotkeeper_round) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  l slotkeeper_ledger := h.ledger;
  v_level double precision := slotkeeper_level(l);
  v_is_fifo boolean := (h.policy).sequence = 'fifo';
  a slotkeeper_account;
  e slotkeeper_entry;
  v_rank slotkeeper_rank;
  v_best_rank slotkeeper_rank;
  v_best integer;
  v_heads integer[];
  v_head integer;
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    e := r.entries[i];
    CONTINUE WHEN e.status IS NOT NULL;
    v_head := v_heads[e.account_no];
    IF v_head IS NULL OR e.arrived_at < (r.entries[v_head]).arrived_at THEN v_heads[e.account_no] := i; END IF;
  END LOOP;
  FOR n IN 1 .. coalesce(array_upper(v_heads, 1), 0) LOOP
    CONTINUE WHEN v_heads[n] IS NULL;
    e := r.entries[v_heads[n]];
    a := r.accounts[n];
    v_rank.held := a.in_flight;
    v_rank.weight := e.weight;
    v_rank.used_ms := a.used_ms + a.in_flight * (h.touched_at - a.as_of);
    v_rank.head_at := e.arrived_at;
    v_rank.zone := slotkeeper_zone(a.in_flight, e.weight, v_level);
    IF v_best IS NULL
      OR (v_is_fifo AND v_rank.head_at < v_best_rank.head_at)
      OR (NOT v_is_fifo AND slotkeeper_ranks_before(v_rank, v_best_rank, h.touched_at))
    THEN
      v_best := v_heads[n];
      v_best_rank := v_rank;
    END IF;
  END LOOP;
  RETURN v_best;
END $$;

CREATE FUNCTION slotkeeper_grant_ranked(r slotkeeper_round) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
DECLARE
  v_best integer;
  v_refused text;
BEGIN
  WHILE ((r.h).policy).slots > ((r.h).ledger).in_flight LOOP
    v_best := slotkeeper_best(r);
    EXIT WHEN v_best IS NULL;
    r := slotkeeper_serve(r, v_best);
    IF (r.entries[v_best]).status = 'IP_TOO_MANY' THEN
      -- What refuses the oldest of a bucket refuses the others.
      v_refused := (r.entries[v_best]).bucket;
      FOR i IN 1 .. cardinality(r.entries) LOOP
        IF (r.entries[i]).status IS NULL AND (r.entries[i]).bucket = v_refused THEN
          r := slotkeeper_serve(r, i);
        END IF;
      END LOOP;
    END IF;
  END LOOP;
  RETURN r;
END $$;

CREATE FUNCTION slotkeeper_grant(r slotkeeper_round) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  v_standing integer := 0;
  v_free integer;
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    IF (r.entries[i]).status IS NULL THEN v_standing := v_standing + 1; END IF;
  END LOOP;
  v_free := least(v_standing, greatest(0, (h.policy).slots - (h.ledger).in_flight));
  IF v_free > 0 THEN
    r.slots := slotkeeper_free_slots(h.host, v_free);
    IF (h.policy).sequence = 'given' THEN
      r := slotkeeper_grant_given(r);
    ELSE
      r := slotkeeper_grant_ranked(r);
    END IF;
  END IF;
  FOR i IN 1 .. cardinality(r.entries) LOOP
    IF (r.entries[i]).status IS NULL THEN
      r.entries[i].status := 'WAIT';
      r.entries[i].blocked_by := 'host-limit';
    END IF;
  END LOOP;
  RETURN r;
END $$;
