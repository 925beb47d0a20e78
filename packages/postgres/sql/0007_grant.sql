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
CREATE FUNCTION slotkeeper_answer(h slotkeeper_host, a slotkeeper_account, e slotkeeper_entry) RETURNS slotkeeper_entry
LANGUAGE plpgsql AS $$
DECLARE
  p slotkeeper_policy := h.policy;
BEGIN
  IF e.is_probe AND h.probes >= p.breaker_probes THEN
    e.status := 'WAIT';
    e.blocked_by := 'breaker';
  ELSIF a.in_flight >= slotkeeper_bucket_limit(p, e.bucket) THEN
    e.status := 'IP_TOO_MANY';
    e.blocked_by := 'ip-limit';
    -- A lease of this very batch is no row yet, and ends after any other.
    e.retry_in_ms := least(slotkeeper_first_end(h.host, e.bucket), slotkeeper_lease_end(h)) - h.touched_at;
  ELSIF e.cool_until > h.touched_at AND e.bucket <> '' THEN
    e.status := 'IP_TOO_MANY';
    e.blocked_by := 'cooldown';
    e.retry_in_ms := e.cool_until - h.touched_at;
  ELSE
    e.status := 'ACQUIRED';
  END IF;
  RETURN e;
END $$;

CREATE FUNCTION slotkeeper_lease_end(h slotkeeper_host) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$ SELECT h.touched_at + least((h.policy).lease_ms, (h.policy).max_hold_ms) $$;

-- Those who stand, in line: bucket by bucket the oldest first, or as given where the instance's weighted scheduler chose.
CREATE FUNCTION slotkeeper_line_up(p_entries slotkeeper_entry[], p_is_given boolean) RETURNS integer[]
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  e slotkeeper_entry;
  v_at integer[];
  v_no integer[];
  v_arrived double precision[];
BEGIN
  FOR i IN 1 .. cardinality(p_entries) LOOP
    e := p_entries[i];
    CONTINUE WHEN e.status IS NOT NULL;
    v_at := v_at || i;
    v_no := v_no || e.account_no;
    v_arrived := v_arrived || e.arrived_at;
  END LOOP;
  IF p_is_given OR coalesce(cardinality(v_at), 0) < 2 THEN RETURN v_at; END IF;
  RETURN ARRAY(SELECT t.at FROM unnest(v_at, v_no, v_arrived) AS t (at, no, arrived) ORDER BY t.no, t.arrived, t.at);
END $$;

-- The lines of the buckets, and how the head of each ranks; NULL where nobody stands any more.
CREATE TYPE slotkeeper_lines AS (
  line integer[],
  next integer[],
  last integer[],
  held integer[],
  weight double precision[],
  used_ms double precision[],
  head_at double precision[]
);

-- Puts the head of a bucket's line in its place in the ranking, as its account stands.
CREATE FUNCTION slotkeeper_set_head(
  t slotkeeper_lines, p_no integer, p_entries slotkeeper_entry[], a slotkeeper_account, p_now double precision
) RETURNS slotkeeper_lines
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  e slotkeeper_entry;
BEGIN
  IF t.next[p_no] > t.last[p_no] THEN
    t.held[p_no] := NULL;
    RETURN t;
  END IF;
  e := p_entries[t.line[t.next[p_no]]];
  t.held[p_no] := a.in_flight;
  t.weight[p_no] := e.weight;
  t.used_ms[p_no] := a.used_ms + a.in_flight * (p_now - a.as_of);
  t.head_at[p_no] := e.arrived_at;
  RETURN t;
END $$;

-- The best-ranked bucket; NULL when nobody stands. Inside a class (same slots in hand, same weight) use is compared as the
-- TypeScript index compares it, by where its line began; p_now is part of that, because it is part of the rounding.
CREATE FUNCTION slotkeeper_best(t slotkeeper_lines, p_level double precision, p_now double precision, p_is_fifo boolean)
RETURNS integer
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_best integer;
  v_held integer;
  v_weight double precision;
  v_used double precision;
  v_zone integer;
  v_zone_n integer;
  v_by double precision;
BEGIN
  FOR n IN 1 .. coalesce(array_upper(t.held, 1), 0) LOOP
    CONTINUE WHEN t.held[n] IS NULL;
    IF v_best IS NOT NULL THEN
      -- Above 0: n goes behind; 0: the older head decides.
      IF p_is_fifo THEN
        v_by := 0;
      ELSIF t.held[n] = v_held AND t.weight[n] = v_weight THEN
        v_by := (t.used_ms[n] - v_held * p_now) - (v_used - v_held * p_now);
      ELSE
        v_zone_n := slotkeeper_zone(t.held[n], t.weight[n], p_level);
        v_zone := slotkeeper_zone(v_held, v_weight, p_level);
        v_by := v_zone_n - v_zone;
        IF v_by = 0 AND v_zone <> 1 THEN
          v_by := (t.held[n] + 1) / t.weight[n] - (v_held + 1) / v_weight;
          IF abs(v_by) <= 1e-9 THEN v_by := 0; END IF;
        END IF;
        IF v_by = 0 THEN v_by := t.used_ms[n] / t.weight[n] - v_used / v_weight; END IF;
      END IF;
      CONTINUE WHEN v_by > 0 OR (v_by = 0 AND t.head_at[n] >= t.head_at[v_best]);
    END IF;
    v_best := n;
    v_held := t.held[n];
    v_weight := t.weight[n];
    v_used := t.used_ms[n];
  END LOOP;
  RETURN v_best;
END $$;

-- Bucket by bucket: who stands first in each line, and how he ranks.
CREATE FUNCTION slotkeeper_lines_of(r slotkeeper_round, p_line integer[]) RETURNS slotkeeper_lines
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  t slotkeeper_lines;
  v_no integer;
BEGIN
  t.line := p_line;
  FOR n IN 1 .. cardinality(p_line) LOOP
    v_no := (r.entries[p_line[n]]).account_no;
    t.next[v_no] := coalesce(t.next[v_no], n);
    t.last[v_no] := n;
  END LOOP;
  FOR n IN 1 .. cardinality(r.accounts) LOOP
    IF t.next[n] IS NOT NULL THEN t := slotkeeper_set_head(t, n, r.entries, r.accounts[n], (r.h).touched_at); END IF;
  END LOOP;
  RETURN t;
END $$;

-- Hands out the free slots. What refuses the oldest of a bucket for the bucket's sake refuses the others of its line.
CREATE FUNCTION slotkeeper_grant(r slotkeeper_round) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  p slotkeeper_policy := h.policy;
  v_entries slotkeeper_entry[] := r.entries;
  v_line integer[] := slotkeeper_line_up(v_entries, p.sequence = 'given');
  v_free integer := least(coalesce(cardinality(v_line), 0), greatest(0, p.slots - (h.ledger).in_flight));
  t slotkeeper_lines;
  s slotkeeper_books;
  e slotkeeper_entry;
  v_limit double precision;
  v_no integer;
  v_turn integer := 0;
BEGIN
  s.ledger := h.ledger;
  IF v_free > 0 THEN
    r.slots := slotkeeper_free_slots(h.host, v_free);
    IF p.sequence <> 'given' THEN t := slotkeeper_lines_of(r, v_line); END IF;
  END IF;
  WHILE v_free > 0 AND p.slots > (s.ledger).in_flight LOOP
    IF p.sequence = 'given' THEN
      v_turn := v_turn + 1;
    ELSE
      -- A bucket that was refused goes on to its last; else the best-ranked is next.
      IF e.status IS DISTINCT FROM 'IP_TOO_MANY' OR t.held[v_no] IS NULL THEN
        v_no := slotkeeper_best(t, slotkeeper_level(s.ledger), h.touched_at, p.sequence = 'fifo');
      END IF;
      v_turn := CASE WHEN v_no IS NOT NULL THEN t.next[v_no] ELSE cardinality(v_line) + 1 END;
    END IF;
    EXIT WHEN v_turn > cardinality(v_line);
    e := v_entries[v_line[v_turn]];
    -- Still open for this session's own window was answered when it was admitted: what is left of an open one is half open.
    e.is_probe := (r.breaker).opened_at IS NOT NULL;
    s.account := r.accounts[e.account_no];
    e := slotkeeper_answer(h, s.account, e);
    IF e.status = 'ACQUIRED' THEN
      v_limit := slotkeeper_bucket_limit(p, e.bucket);
      s := slotkeeper_shift(s, 0, 1, e.weight, v_limit);
      s := slotkeeper_shift(s, -1, 0, e.weight, v_limit);
      r.accounts[e.account_no] := s.account;
      r.granted := r.granted + 1;
      h.fence := h.fence + 1;
      IF e.is_probe THEN h.probes := h.probes + 1; END IF;
      e.is_granted := true;
      e.slot_id := r.slots[r.granted];
      e.token := slotkeeper_new_token(e.slot_id);
      e.fence := h.fence;
      e.ends_at := slotkeeper_lease_end(h);
    END IF;
    v_entries[v_line[v_turn]] := e;
    IF p.sequence <> 'given' THEN
      t.next[v_no] := v_turn + 1;
      t := slotkeeper_set_head(t, v_no, v_entries, s.account, h.touched_at);
    END IF;
  END LOOP;
  FOR i IN 1 .. cardinality(v_entries) LOOP
    e := v_entries[i];
    CONTINUE WHEN e.status IS NOT NULL;
    e.status := 'WAIT';
    e.blocked_by := 'host-limit';
    v_entries[i] := e;
  END LOOP;
  h.ledger := s.ledger;
  r.h := h;
  r.entries := v_entries;
  RETURN r;
END $$;
