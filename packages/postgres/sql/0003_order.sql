-- The clock, and the order: packages/queue/src/order/{transitions,order}.ts, operation for operation. Both are IEEE doubles
-- combined in the same sequence, so that the same history gives the same grants, ties included (a property test says so).

-- The only clock. VOLATILE and of the wall, not of the transaction: it must be read after the host's lock was waited for.
-- Tests that need another time replace this function in their own database: nothing that a role can set moves it.
CREATE FUNCTION slotkeeper_now() RETURNS double precision
LANGUAGE sql VOLATILE AS $$ SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 $$;

CREATE TYPE slotkeeper_books AS (ledger slotkeeper_ledger, account slotkeeper_account);

-- Lets the meter R run to an instant, on the sums as they stand. Comes before anything that changes them.
CREATE FUNCTION slotkeeper_advance(l slotkeeper_ledger, p_at double precision) RETURNS slotkeeper_ledger
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_at > l.as_of THEN
    IF l.active_weight > 0 THEN
      l.progress := l.progress + least(l.slots, l.demand) / l.active_weight * (p_at - l.as_of);
    END IF;
    l.as_of := p_at;
  END IF;
  RETURN l;
END $$;

CREATE FUNCTION slotkeeper_new_account(p_host text, p_bucket text, p_weight double precision, p_at double precision)
RETURNS slotkeeper_account
LANGUAGE sql IMMUTABLE AS $$ SELECT ROW(p_host, p_bucket, p_weight, 0, 0, 0, p_at, 0, false)::slotkeeper_account $$;

-- An idle account that is not ahead of the meter counts as none: its row may be there or not.
CREATE FUNCTION slotkeeper_is_passed(l slotkeeper_ledger, a slotkeeper_account) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$ SELECT a.used_ms <= l.progress * a.weight + 1e-3 $$;

-- Everything that can happen to an account: one waiter or one slot more or less.
--   T1 in_flight, waiting, demand of the ledger = the sums over accounts; active_weight = over active ones
--   T2 contending_weight, contending_held = over accounts that wait and are below their limit
-- The ledger must stand at the moment of the change: use accrues exactly to it.
CREATE FUNCTION slotkeeper_shift(
  s slotkeeper_books, p_waiting integer, p_held integer, p_weight double precision, p_limit double precision
) RETURNS slotkeeper_books
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  l slotkeeper_ledger := s.ledger;
  a slotkeeper_account := s.account;
  v_demand double precision;
  v_contends boolean;
BEGIN
  IF p_waiting > 0 OR p_held > 0 THEN
    IF a.in_flight = 0 AND a.waiting = 0 THEN
      -- Back from idle: joins at the meter, never below what it had and is still ahead by.
      IF slotkeeper_is_passed(l, a) THEN a.used_ms := 0; END IF;
      a.weight := p_weight;
      a.used_ms := greatest(a.used_ms, l.progress * p_weight);
      a.as_of := l.as_of;
      l.active_weight := l.active_weight + p_weight;
    ELSIF a.weight <> p_weight THEN
      -- A changed weight keeps the place per weight.
      a.used_ms := (a.used_ms + a.in_flight * (l.as_of - a.as_of)) * (p_weight / a.weight);
      a.as_of := l.as_of;
      l.active_weight := l.active_weight + (p_weight - a.weight);
      IF a.contends THEN l.contending_weight := l.contending_weight + (p_weight - a.weight); END IF;
      a.weight := p_weight;
    END IF;
  END IF;

  IF p_held <> 0 THEN
    a.used_ms := a.used_ms + a.in_flight * (l.as_of - a.as_of);
    a.as_of := l.as_of;
    IF a.contends THEN l.contending_held := l.contending_held + p_held; END IF;
    a.in_flight := a.in_flight + p_held;
    l.in_flight := l.in_flight + p_held;
  END IF;
  a.waiting := a.waiting + p_waiting;
  l.waiting := l.waiting + p_waiting;

  v_demand := least(p_limit, a.waiting + a.in_flight);
  l.demand := l.demand + (v_demand - a.demand);
  a.demand := v_demand;
  v_contends := a.waiting > 0 AND a.in_flight < p_limit;
  IF v_contends <> a.contends THEN
    a.contends := v_contends;
    IF v_contends THEN
      l.contending_weight := l.contending_weight + a.weight;
      l.contending_held := l.contending_held + a.in_flight;
    ELSE
      l.contending_weight := l.contending_weight - a.weight;
      l.contending_held := l.contending_held - a.in_flight;
    END IF;
    -- Sums of fractions drift; with nobody waiting they are known exactly.
    IF l.waiting = 0 THEN l.contending_weight := 0; END IF;
  END IF;

  IF a.in_flight = 0 AND a.waiting = 0 THEN
    l.active_weight := CASE WHEN l.in_flight + l.waiting = 0 THEN 0 ELSE l.active_weight - a.weight END;
  END IF;
  RETURN ROW(l, a)::slotkeeper_books;
END $$;

-- Fair slots per weight among those that want more.
CREATE FUNCTION slotkeeper_level(l slotkeeper_ledger) RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN l.contending_weight > 0
    THEN greatest(0, l.slots - (l.in_flight - l.contending_held)) / l.contending_weight ELSE 0 END
$$;

-- What a bucket has used, running holds counted; one without an account would join at the meter.
CREATE FUNCTION slotkeeper_used(l slotkeeper_ledger, a slotkeeper_account, p_weight double precision, p_now double precision)
RETURNS double precision
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN a.in_flight = 0 AND a.waiting = 0 AND slotkeeper_is_passed(l, a) THEN l.progress * p_weight
    ELSE a.used_ms + a.in_flight * (p_now - a.as_of) END
$$;

-- Zones 0, 1, 2 of the order (decision 0031): its own share; the part of a slot that is its own; more than its share.
CREATE FUNCTION slotkeeper_zone(p_held integer, p_weight double precision, p_level double precision) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN p_held + 1 <= p_level * p_weight + 1e-9 THEN 0 WHEN p_held < p_level * p_weight - 1e-9 THEN 1 ELSE 2 END
$$;
