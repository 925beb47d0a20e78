-- register and tryAcquire of the port: packages/queue/src/store/{batch-decision,grant-round,waiter-pool}.ts.
--
--   S1 under the host's lock, counted after settling: never more leases than slots, nor of a bucket than its limit
--   S4 a session that was granted or has ended gets the same answer again; the record is looked up under the lock
--   S6 never more waiters than the limits, those that direct callers counted included
--   S7 decided as a whole, in the host's order, each grant counted before the next
--   S8 one statement: it happened, or nothing did; repeated, it finds what it did
--
-- Four stages, each handing the round to the next: load, admit, grant, conclude. Rows are read at the start and written at
-- the end, a fixed number of statements whatever the batch; in between everything happens in memory. A newcomer who is
-- granted at once never becomes a row of the pool.

-- A waiter of the batch. Given: session … is_grantable. Found in the tables: account, cool_until, seen_at of its place,
-- ending, slot_id … of its grant. The rest is decided.
CREATE TYPE slotkeeper_entry AS (
  session text,
  bucket text,
  weight double precision,
  arrived_at double precision,
  ttl_ms double precision,
  open_ms double precision,
  capacity double precision,
  is_grantable boolean,
  account slotkeeper_account,
  cool_until double precision,
  seen_at double precision,
  ending text,
  slot_id integer,
  token text,
  fence bigint,
  ends_at double precision,
  account_no integer,
  is_pooled boolean,
  is_granted boolean,
  is_probe boolean,
  status text,
  blocked_by text,
  retry_in_ms double precision
);

CREATE TYPE slotkeeper_round AS (
  h slotkeeper_host,
  given slotkeeper_policy,
  is_semaphore boolean,
  instance text,
  breaker slotkeeper_breaker,
  entries slotkeeper_entry[],
  accounts slotkeeper_account[],
  buckets text[],
  displaced text[],
  slots integer[],
  granted integer
);

-- LIMIT 1 keeps the planner from joining whole tables: each row is looked up by its key, however many the host has.
CREATE FUNCTION slotkeeper_load(h slotkeeper_host, p_waiters jsonb) RETURNS slotkeeper_entry[]
LANGUAGE plpgsql AS $$
BEGIN
  RETURN ARRAY(
    SELECT ROW(
      w.session, w.bucket, w.weight, w.arrived_at, w.ttl_ms, w.open_ms, w.capacity, w.is_grantable,
      a.account, coalesce(c.cool_until, extract(epoch FROM c.last_release_at) * 1000 + (h.policy).cooldown_ms),
      q.seen_at,
      CASE WHEN s.keep_until + slotkeeper_grace_ms() > h.touched_at AND p.id IS NULL THEN coalesce(s.ending, 'released') END,
      p.id, p.token, p.fence, p.ends_at,
      NULL, q.session IS NOT NULL, false, false, NULL, NULL, NULL
    )::slotkeeper_entry
    FROM ROWS FROM (jsonb_to_recordset(p_waiters) AS (
      session text, bucket text, weight double precision, arrived_at double precision, ttl_ms double precision,
      open_ms double precision, capacity double precision, is_grantable boolean
    )) WITH ORDINALITY AS w (session, bucket, weight, arrived_at, ttl_ms, open_ms, capacity, is_grantable, at)
    LEFT JOIN LATERAL (SELECT * FROM slotkeeper_session t WHERE t.host = h.host AND t.session = w.session LIMIT 1) s ON true
    LEFT JOIN LATERAL (
      SELECT * FROM upstream_slot_pool t WHERE t.id = s.slot_id AND t.fence = s.fence AND NOT t.is_released LIMIT 1
    ) p ON true
    LEFT JOIN LATERAL (SELECT * FROM slotkeeper_waiter t WHERE t.host = h.host AND t.session = w.session LIMIT 1) q ON true
    LEFT JOIN LATERAL (
      SELECT t AS account FROM slotkeeper_account t WHERE t.host = h.host AND t.bucket = w.bucket LIMIT 1
    ) a ON true
    LEFT JOIN LATERAL (
      SELECT * FROM upstream_ip_cooldown t WHERE t.hostname_pattern = h.host AND t.ip_hash = w.bucket LIMIT 1
    ) c ON true
    ORDER BY w.at
  );
END $$;

-- The accounts of the batch's buckets, each once, numbered as the entries name them.
CREATE FUNCTION slotkeeper_load_accounts(r slotkeeper_round) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
DECLARE
  e slotkeeper_entry;
  v_no integer;
BEGIN
  FOR i IN 1 .. cardinality(r.entries) LOOP
    e := r.entries[i];
    v_no := array_position(r.buckets, e.bucket);
    IF v_no IS NULL THEN
      v_no := cardinality(r.buckets) + 1;
      r.buckets[v_no] := e.bucket;
      r.accounts[v_no] := CASE WHEN (e.account).host IS NOT NULL THEN e.account
        ELSE slotkeeper_new_account((r.h).host, e.bucket, e.weight, (r.h).touched_at) END;
    END IF;
    e.account := NULL;
    e.account_no := v_no;
    r.entries[i] := e;
  END LOOP;
  RETURN r;
END $$;

-- Admits newcomers to the pool, in the order of the batch, and answers those of whom something is known. Where the pool has
-- room for the whole batch, nothing need be asked.
CREATE FUNCTION slotkeeper_admit(r slotkeeper_round, p_may_grant boolean) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  p slotkeeper_policy := h.policy;
  e slotkeeper_entry;
  s slotkeeper_books;
  v_open_for double precision := h.touched_at - (r.breaker).opened_at;
  v_has_room boolean := NOT r.is_semaphore AND h.direct_waiting <= 0 AND p.waiters_per_bucket = 'Infinity'
    AND (h.ledger).waiting + cardinality(r.entries) <= p.waiters;
BEGIN
  s.ledger := h.ledger;
  FOR i IN 1 .. cardinality(r.entries) LOOP
    e := r.entries[i];
    IF e.ending IS NOT NULL THEN
      e.status := 'ENDED';
    ELSIF e.slot_id IS NOT NULL THEN
      e.status := 'ACQUIRED';
    ELSIF v_open_for < e.open_ms THEN
      e.status := 'THROTTLED';
      e.retry_in_ms := e.open_ms - v_open_for;
    ELSIF NOT e.is_pooled AND v_has_room THEN
      s.account := r.accounts[e.account_no];
      s := slotkeeper_shift(s, 1, 0, e.weight, slotkeeper_bucket_limit(p, e.bucket));
      r.accounts[e.account_no] := s.account;
      e.is_pooled := true;
    ELSIF NOT e.is_pooled THEN
      r := slotkeeper_join(r, i);
      e := r.entries[i];
    END IF;
    IF e.status IS NULL AND NOT (p_may_grant AND e.is_grantable) THEN e.status := 'WAIT'; END IF;
    r.entries[i] := e;
  END LOOP;
  IF v_has_room THEN
    h.ledger := s.ledger;
    r.h := h;
  END IF;
  RETURN r;
END $$;

-- A newcomer. The first user of a named semaphore fixes its capacity, and who asks for another is refused. A pool that is
-- full makes room for a bucket at least two places poorer than the richest.
CREATE FUNCTION slotkeeper_join(r slotkeeper_round, i integer) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  e slotkeeper_entry := r.entries[i];
  s slotkeeper_books;
  p slotkeeper_policy;
  v_places integer := (r.accounts[e.account_no]).waiting;
  v_waiting integer := (h.ledger).waiting;
BEGIN
  IF r.is_semaphore AND h.capacity IS NULL THEN
    h.capacity := coalesce(e.capacity, (r.given).slots);
    h := slotkeeper_adopt(h, r.given);
    r.h := h;
  END IF;
  p := h.policy;
  IF h.direct_waiting > 0 THEN
    v_places := v_places + slotkeeper_direct_waiting(h, e.bucket);
    v_waiting := v_waiting + slotkeeper_direct_waiting(h);
  END IF;
  IF r.is_semaphore AND e.capacity <> h.capacity THEN
    e.status := 'CAPACITY_MISMATCH';
  ELSIF v_places >= p.waiters_per_bucket THEN
    e.status := 'QUEUE_FULL';
  ELSIF v_waiting >= p.waiters THEN
    r := slotkeeper_displace(r, i, v_places);
    h := r.h;
    e := r.entries[i];
  END IF;
  IF e.status IS NULL THEN
    s := ROW(h.ledger, r.accounts[e.account_no])::slotkeeper_books;
    s := slotkeeper_shift(s, 1, 0, e.weight, slotkeeper_bucket_limit(p, e.bucket));
    r.accounts[e.account_no] := s.account;
    h.ledger := s.ledger;
    r.h := h;
    e.is_pooled := true;
  END IF;
  r.entries[i] := e;
  RETURN r;
END $$;

-- Takes the place of the youngest of the largest bucket, the youngest bucket of several; or says that the pool is full.
CREATE FUNCTION slotkeeper_displace(r slotkeeper_round, i integer, p_places integer) RETURNS slotkeeper_round
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  e slotkeeper_entry;
  s slotkeeper_books;
  r_victim record;
  v_no integer;
BEGIN
  r.entries := slotkeeper_write_joins(r, i - 1);
  WITH largest AS (
    SELECT bucket FROM slotkeeper_waiter WHERE host = h.host
    GROUP BY bucket HAVING count(*) >= p_places + 2 ORDER BY count(*) DESC, max(arrived_at) DESC LIMIT 1
  ), youngest AS (
    SELECT session FROM slotkeeper_waiter JOIN largest USING (bucket) WHERE host = h.host ORDER BY arrived_at DESC LIMIT 1
  )
  DELETE FROM slotkeeper_waiter w USING youngest y WHERE w.host = h.host AND w.session = y.session
  RETURNING w.session, w.bucket INTO r_victim;
  IF NOT FOUND THEN
    r.entries[i].status := 'QUEUE_FULL';
    RETURN r;
  END IF;
  r.displaced := r.displaced || r_victim.session::text;
  v_no := array_position(r.buckets, r_victim.bucket);
  IF v_no IS NULL THEN
    h := slotkeeper_move(h, r_victim.bucket, NULL, -1, 0);
  ELSE
    s := ROW(h.ledger, r.accounts[v_no])::slotkeeper_books;
    s := slotkeeper_shift(s, -1, 0, 0, slotkeeper_bucket_limit(h.policy, r_victim.bucket));
    r.accounts[v_no] := s.account;
    h.ledger := s.ledger;
  END IF;
  r.h := h;
  -- It may stand in this very batch, before or behind.
  FOR n IN 1 .. cardinality(r.entries) LOOP
    e := r.entries[n];
    CONTINUE WHEN e.session <> r_victim.session;
    e.is_pooled := false;
    e.seen_at := NULL;
    IF e.status IS NULL AND n < i THEN e.status := 'QUEUE_FULL'; END IF;
    r.entries[n] := e;
  END LOOP;
  RETURN r;
END $$;

-- Newcomers among the first p_upto become rows of the pool. seen_at says that a row is there.
CREATE FUNCTION slotkeeper_write_joins(r slotkeeper_round, p_upto integer) RETURNS slotkeeper_entry[]
LANGUAGE plpgsql AS $$
DECLARE
  e slotkeeper_entry;
  h slotkeeper_host := r.h;
BEGIN
  FOR i IN 1 .. p_upto LOOP
    e := r.entries[i];
    CONTINUE WHEN NOT e.is_pooled OR e.seen_at IS NOT NULL;
    INSERT INTO slotkeeper_waiter
    VALUES (h.host, e.session, e.bucket, e.arrived_at, r.instance, h.touched_at, e.is_grantable);
    e.seen_at := h.touched_at;
    r.entries[i] := e;
  END LOOP;
  RETURN r.entries;
END $$;

-- Writes the round down and makes the answer, BatchReply of the port.
CREATE FUNCTION slotkeeper_conclude(r slotkeeper_round) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  v_now double precision := h.touched_at;
  v_reclaimed integer;
BEGIN
  PERFORM slotkeeper_write_grants(r);
  PERFORM slotkeeper_write_waiters(r);
  INSERT INTO slotkeeper_account AS t
  SELECT * FROM unnest(r.accounts) a WHERE a.in_flight + a.waiting > 0 OR cardinality(r.displaced) > 0
  ON CONFLICT (host, bucket) DO UPDATE SET weight = excluded.weight, in_flight = excluded.in_flight,
    waiting = excluded.waiting, used_ms = excluded.used_ms, as_of = excluded.as_of, demand = excluded.demand,
    contends = excluded.contends
  WHERE t IS DISTINCT FROM excluded;
  IF (h.ledger).waiting > 0 THEN h.next_silent_at := least(h.next_silent_at, v_now + slotkeeper_silence_ms()); END IF;
  h.next_end_at := slotkeeper_first_end(h.host, NULL);
  v_reclaimed := h.reclaimed;
  h.reclaimed := 0;
  PERFORM slotkeeper_close(h);
  RETURN jsonb_strip_nulls(jsonb_build_object(
    'verdicts', slotkeeper_verdicts(r),
    'displaced', to_jsonb(r.displaced),
    'accounts', slotkeeper_account_views(r),
    'level', slotkeeper_level(h.ledger),
    'free', greatest(0, (h.policy).slots - (h.ledger).in_flight),
    'freeInMs', CASE WHEN h.next_end_at < 'Infinity' THEN h.next_end_at - v_now END,
    'breaker', slotkeeper_breaker_view(r.breaker, v_now),
    'reclaimed', nullif(v_reclaimed, 0)
  ));
END $$;

CREATE FUNCTION slotkeeper_verdicts(r slotkeeper_round) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN (
    SELECT coalesce(jsonb_agg(CASE e.status
      WHEN 'ACQUIRED' THEN jsonb_build_object('status', e.status, 'slot', jsonb_build_object(
        'slotToken', e.token, 'fence', e.fence, 'leaseMs', e.ends_at - (r.h).touched_at))
      WHEN 'WAIT' THEN jsonb_build_object('status', e.status, 'blockedBy', e.blocked_by)
      WHEN 'IP_TOO_MANY' THEN
        jsonb_build_object('status', e.status, 'blockedBy', e.blocked_by, 'retryInMs', e.retry_in_ms)
      WHEN 'THROTTLED' THEN
        jsonb_build_object('status', e.status, 'code', (r.breaker).code, 'retryInMs', e.retry_in_ms)
      WHEN 'ENDED' THEN jsonb_build_object('status', e.status, 'end', e.ending)
      WHEN 'CAPACITY_MISMATCH' THEN jsonb_build_object('status', e.status, 'capacity', ((r.h).policy).slots)
      ELSE jsonb_build_object('status', e.status)
    END ORDER BY at), '[]')
    FROM unnest(r.entries) WITH ORDINALITY AS e (session, bucket, weight, arrived_at, ttl_ms, open_ms, capacity,
      is_grantable, account, cool_until, seen_at, ending, slot_id, token, fence, ends_at, account_no, is_pooled, is_granted,
      is_probe, status, blocked_by, retry_in_ms, at)
  );
END $$;

-- The accounts of the batch's buckets; one that has none would join at the meter, with the weight it was first named with.
CREATE FUNCTION slotkeeper_account_views(r slotkeeper_round) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  e slotkeeper_entry;
  v_weights double precision[];
  v_views jsonb[] := '{}';
  a slotkeeper_account;
BEGIN
  FOREACH e IN ARRAY r.entries LOOP
    v_weights[e.account_no] := coalesce(v_weights[e.account_no], e.weight);
  END LOOP;
  FOR n IN 1 .. coalesce(cardinality(r.accounts), 0) LOOP
    a := r.accounts[n];
    v_views := v_views || jsonb_build_object('bucket', a.bucket, 'inFlight', a.in_flight,
      'usedMs', slotkeeper_used((r.h).ledger, a, v_weights[n], (r.h).touched_at));
  END LOOP;
  RETURN to_jsonb(v_views);
END $$;

-- New leases, the record of each, and the marks on those that were asked for again. Written from arrays of plain values:
-- taking the entries apart once more for each statement cost as much as the rest of it.
CREATE FUNCTION slotkeeper_write_grants(r slotkeeper_round) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_now double precision := (r.h).touched_at;
  v_host text := (r.h).host;
  e slotkeeper_entry;
  v_ends_at double precision;
  v_ids integer[];
  v_fences bigint[];
  v_tokens text[];
  v_sessions text[];
  v_buckets text[];
  v_probes boolean[];
  v_keep double precision[];
BEGIN
  FOREACH e IN ARRAY r.entries LOOP
    IF e.is_granted THEN
      v_ends_at := e.ends_at;
      v_ids := v_ids || e.slot_id;
      v_fences := v_fences || e.fence;
      v_tokens := v_tokens || e.token;
      v_sessions := v_sessions || e.session;
      v_buckets := v_buckets || e.bucket;
      v_probes := v_probes || e.is_probe;
      v_keep := v_keep || (v_now + e.ttl_ms);
    ELSIF e.status IN ('ACQUIRED', 'ENDED') THEN
      UPDATE slotkeeper_session SET keep_until = v_now + e.ttl_ms
      WHERE host = v_host AND session = e.session AND keep_until < v_now + e.ttl_ms;
      UPDATE upstream_slot_pool SET is_shared = true WHERE id = e.slot_id AND NOT is_shared;
    END IF;
  END LOOP;
  IF r.granted = 0 THEN RETURN; END IF;
  UPDATE upstream_slot_pool p SET status = 'locked', ip_hash = g.bucket, locked_at = to_timestamp(v_now / 1000),
    token = g.token, fence = g.fence, session = g.session, instance = r.instance, granted_by = 'service',
    granted_at = v_now, ends_at = v_ends_at, is_released = false, is_probe = g.is_probe, is_shared = false
  FROM unnest(v_ids, v_fences, v_tokens, v_sessions, v_buckets, v_probes)
    AS g (id, fence, token, session, bucket, is_probe) WHERE p.id = g.id;
  INSERT INTO slotkeeper_session (host, session, slot_id, fence, keep_until)
  SELECT v_host, g.session, g.id, g.fence, g.keep_until
  FROM unnest(v_sessions, v_ids, v_fences, v_keep) AS g (session, id, fence, keep_until)
  -- Only a record that is past its deadline can be in the way. The same session twice in one batch is an error here.
  ON CONFLICT (host, session) DO UPDATE SET slot_id = excluded.slot_id, fence = excluded.fence, ending = NULL,
    keep_until = excluded.keep_until;
  -- Now and then, what is past its deadline goes; the sweep gets the rest.
  IF (r.h).fence % 16 < r.granted THEN PERFORM slotkeeper_forget_sessions(v_host, v_now, 64); END IF;
END $$;

-- A record outlives its deadline while its lease lasts. Returns how many went.
CREATE FUNCTION slotkeeper_forget_sessions(p_host text, p_now double precision, p_most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  v_gone integer;
BEGIN
  DELETE FROM slotkeeper_session d WHERE (d.host, d.session) IN (
    SELECT s.host, s.session FROM slotkeeper_session s
    WHERE s.host || '' = p_host AND s.keep_until <= p_now - slotkeeper_grace_ms() AND NOT EXISTS (
      SELECT FROM upstream_slot_pool p WHERE p.id = s.slot_id AND p.fence = s.fence AND p.ends_at > p_now
    ) ORDER BY s.keep_until LIMIT p_most
  );
  GET DIAGNOSTICS v_gone = ROW_COUNT;
  RETURN v_gone;
END $$;

-- The pool: who left, who came, who was spoken for (who is throttled keeps his place, and his instance).
CREATE FUNCTION slotkeeper_write_waiters(r slotkeeper_round) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  h slotkeeper_host := r.h;
  v_now double precision := h.touched_at;
  e slotkeeper_entry;
  v_new integer := 0;
  v_left text[];
  v_alive text[];
  v_awake text[];
BEGIN
  FOREACH e IN ARRAY r.entries LOOP
    IF e.is_granted THEN
      IF e.seen_at IS NOT NULL THEN v_left := v_left || e.session; END IF;
    ELSIF e.is_pooled AND e.status IN ('WAIT', 'IP_TOO_MANY') THEN
      IF e.seen_at IS NULL THEN v_new := v_new + 1; ELSE v_alive := v_alive || e.session; END IF;
      IF e.is_grantable THEN v_awake := v_awake || e.session; END IF;
    END IF;
  END LOOP;
  IF v_left IS NOT NULL THEN DELETE FROM slotkeeper_waiter WHERE host = h.host AND session = ANY (v_left); END IF;
  IF v_alive IS NOT NULL THEN
    UPDATE slotkeeper_waiter SET seen_at = v_now, instance = r.instance,
      is_grantable = coalesce(session = ANY (v_awake), false)
    WHERE host = h.host AND session = ANY (v_alive);
  END IF;
  IF v_new > 0 THEN
    INSERT INTO slotkeeper_waiter
    SELECT h.host, n.session, n.bucket, n.arrived_at, r.instance, v_now, n.is_grantable
    FROM unnest(r.entries) n WHERE n.is_pooled AND NOT n.is_granted AND n.seen_at IS NULL;
  END IF;
END $$;

CREATE FUNCTION slotkeeper_decide(p_batch jsonb, p_may_grant boolean) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  r slotkeeper_round;
  v_given slotkeeper_policy := jsonb_populate_record(NULL::slotkeeper_policy, p_batch -> 'policy');
  h slotkeeper_host := slotkeeper_open(p_batch ->> 'host', v_given);
BEGIN
  r.h := h;
  r.given := v_given;
  r.is_semaphore := (p_batch -> 'is_semaphore')::boolean;
  r.instance := p_batch ->> 'instance';
  r.breaker := slotkeeper_breaker_read(h.host, h.touched_at, (h.policy).breaker_open_ms);
  r.entries := slotkeeper_load(h, p_batch -> 'waiters');
  r.accounts := '{}';
  r.buckets := '{}';
  r.displaced := '{}';
  r.granted := 0;
  r := slotkeeper_load_accounts(r);
  r := slotkeeper_admit(r, p_may_grant);
  IF p_may_grant THEN r := slotkeeper_grant(r); END IF;
  RETURN slotkeeper_conclude(r);
END $$;

CREATE FUNCTION slotkeeper_register(p_batch jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
BEGIN
  RETURN slotkeeper_decide(p_batch, false);
END $$;

CREATE FUNCTION slotkeeper_try_acquire(p_batch jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '3s' SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off AS $$
BEGIN
  RETURN slotkeeper_decide(p_batch, true);
END $$;
