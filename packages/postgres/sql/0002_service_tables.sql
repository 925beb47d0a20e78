-- The service's tables, and what they add to the four tables of the original layout (migration 0001).
--
-- One truth. Direct callers of the old functions and the service's instances count against the same rows:
--
--   upstream_slot_pool         one row for each slot index of a host, updated in place. A slot is taken while
--                              status = 'locked'; it is over once ends_at has passed, and is set free by whoever settles
--                              the host next. Nothing is counted without settling first.
--   upstream_ip_cooldown       when a bucket may hold a slot again
--   upstream_ip_queue_depth    waiters that direct callers counted up; beside them slotkeeper_waiter has the service's,
--                              one row each. Caps count both.
--   "THROTTLE_PROTECTION"      the breaker
--   slotkeeper_host            one row for each host: THE LOCK, the ledger of the order, the fence, limits in force
--   slotkeeper_account         one row for each bucket of a host: use, slots in hand, waiters, weight
--   slotkeeper_waiter          the pool of waiters
--   slotkeeper_session         what became of a session, kept until its deadline
--   slotkeeper_token_key       what signs session tokens
--   slotkeeper_fence_floor     fences of hosts that were forgotten
--
-- Rules that every function keeps:
--   L1 The host row is locked first (slotkeeper_open, slotkeeper_find), then the clock is read (slotkeeper_now), then what
--      time has ended is settled, then anything is counted. No statement locks two hosts, but for the sweep, which skips
--      hosts that are locked.
--      What reads tables is VOLATILE, because a STABLE function reads them as they were before its caller waited.
--   L2 Only the holder of a host's lock writes rows of that host, in any of the tables.
--   L3 No indexed column is ever updated, so that updates stay HOT. The old tables keep their primary keys and
--      UNIQUE (hostname_pattern, slot_index), and no other index.
--   L4 Only rows take numbers from the sequence of upstream_slot_pool, never a try: a row is made when a slot of the limit
--      has none yet.
--
-- Words. `host` (hostname_pattern, "HOSTNAME_HASH"): the host's key, that is hostnameHash, else the SHA-256 in hex of the
-- lower-cased hostname. `bucket` (ip_hash): the bucket's name; '' is the shared bucket, without limit or cooldown of its
-- own. Instants are milliseconds since 1970 as double precision, like the arithmetic of the TypeScript order they must
-- agree with to the last bit; 'Infinity' is a limit that is off. A slot's token is '<id>.<64 hex digits>': the id finds
-- the row without an index on the token.

CREATE TYPE slotkeeper_policy AS (
  slots double precision,
  slots_per_bucket double precision,
  waiters double precision,
  waiters_per_bucket double precision,
  lease_ms double precision,
  max_hold_ms double precision,
  cooldown_ms double precision,
  min_hold_ms double precision,
  smooth_ms double precision,
  sequence text,
  breaker_window_ms double precision,
  breaker_codes integer[],
  breaker_ratio_percent double precision,
  breaker_min_samples double precision,
  breaker_fast_ratio_percent double precision,
  breaker_fast_min_samples double precision,
  breaker_consecutive double precision,
  breaker_open_ms double precision,
  breaker_probes double precision
);
COMMENT ON TYPE slotkeeper_policy IS 'HostPolicy of the port, flat. sequence: slot-seconds, fifo or given.';

CREATE TYPE slotkeeper_ledger AS (
  slots double precision,
  progress double precision,
  as_of double precision,
  active_weight double precision,
  in_flight integer,
  waiting integer,
  demand double precision,
  contending_weight double precision,
  contending_held integer
);
COMMENT ON TYPE slotkeeper_ledger IS 'The books of the order for one host: Ledger in packages/queue/src/order/state.ts.';

CREATE TABLE slotkeeper_host (
  host text PRIMARY KEY,
  ledger slotkeeper_ledger NOT NULL,
  policy slotkeeper_policy NOT NULL,
  capacity double precision,
  live_slots double precision,
  live_slots_per_bucket double precision,
  fence bigint NOT NULL,
  probes integer NOT NULL DEFAULT 0,
  reclaimed integer NOT NULL DEFAULT 0,
  last_end_at double precision NOT NULL DEFAULT '-Infinity',
  next_end_at double precision NOT NULL DEFAULT 'Infinity',
  next_silent_at double precision NOT NULL DEFAULT 'Infinity',
  direct_waiting integer NOT NULL DEFAULT 0,
  touched_at double precision NOT NULL
) WITH (fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON COLUMN slotkeeper_host.policy IS 'In force: what instances brought last, with capacity and live limits put in.';
COMMENT ON COLUMN slotkeeper_host.capacity IS 'What the live users of a named semaphore fixed.';
COMMENT ON COLUMN slotkeeper_host.probes IS 'Leases that are half-open probes.';
COMMENT ON COLUMN slotkeeper_host.reclaimed IS 'Leases that ran out unreleased, and that no answer has told of yet.';
COMMENT ON COLUMN slotkeeper_host.next_end_at IS 'No lease ends before it. A lower bound: settling looks only when it has come.';
COMMENT ON COLUMN slotkeeper_host.next_silent_at IS 'No waiter falls silent before it. A lower bound.';
COMMENT ON COLUMN slotkeeper_host.touched_at IS 'The moment of the last call, by the clock as read under its lock.';
COMMENT ON COLUMN slotkeeper_host.direct_waiting IS
  'Above 0: upstream_ip_queue_depth may have live rows of this host, and is asked. 0: it has none.';

CREATE TABLE slotkeeper_account (
  host text NOT NULL,
  bucket text NOT NULL,
  weight double precision NOT NULL,
  in_flight integer NOT NULL,
  waiting integer NOT NULL,
  used_ms double precision NOT NULL,
  as_of double precision NOT NULL,
  demand double precision NOT NULL,
  contends boolean NOT NULL,
  PRIMARY KEY (host, bucket)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE slotkeeper_account IS
  'Account in packages/queue/src/order/state.ts. waiting counts slotkeeper_waiter only. An idle row that the meter has passed counts as none.';

CREATE TABLE slotkeeper_waiter (
  host text NOT NULL,
  session text NOT NULL,
  bucket text NOT NULL,
  arrived_at double precision NOT NULL,
  instance text NOT NULL,
  seen_at double precision NOT NULL,
  is_grantable boolean NOT NULL,
  PRIMARY KEY (host, session)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_insert_threshold = -1);

CREATE TABLE slotkeeper_session (
  host text NOT NULL,
  session text NOT NULL,
  slot_id integer,
  fence bigint,
  ending text CHECK (ending IN ('timeout', 'canceled', 'throttled', 'released')),
  keep_until double precision NOT NULL,
  PRIMARY KEY (host, session),
  CHECK ((slot_id IS NULL) = (fence IS NULL) AND (slot_id IS NULL) <> (ending IS NULL))
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_insert_threshold = -1);
-- On an expression, so that only slotkeeper_forget_sessions can use it: with (host, keep_until) the planner, knowing nothing of
-- a new table, took this index to find one session, and read all of the host's (2.3 ms instead of 0.1 for sixteen).
CREATE INDEX slotkeeper_session_keep ON slotkeeper_session ((host || ''), keep_until);
COMMENT ON TABLE slotkeeper_session IS
  'Its lease, which is over unless the slot still has this fence; or its end. Asked for by session: granted once in its life.';

CREATE TABLE slotkeeper_token_key (
  id smallint PRIMARY KEY CHECK (id = 1),
  secret text NOT NULL
);

CREATE TABLE slotkeeper_fence_floor (
  id smallint PRIMARY KEY CHECK (id = 1),
  fence bigint NOT NULL
);
INSERT INTO slotkeeper_fence_floor VALUES (1, 0);

-- granted_by: 'service'; 'token' and 'id' for download_try_acquire_slot and func_try_acquire_slot, whose rows have neither
-- session nor instance. is_shared: more than one call was told of the slot, so nobody may take it for uncollected.
ALTER TABLE upstream_slot_pool
  ADD COLUMN token text,
  ADD COLUMN fence bigint,
  ADD COLUMN session text,
  ADD COLUMN instance text,
  ADD COLUMN granted_by text,
  ADD COLUMN granted_at double precision,
  ADD COLUMN ends_at double precision,
  ADD COLUMN is_released boolean NOT NULL DEFAULT false,
  ADD COLUMN is_probe boolean NOT NULL DEFAULT false,
  ADD COLUMN is_shared boolean NOT NULL DEFAULT false;
CREATE UNIQUE INDEX IF NOT EXISTS upstream_slot_pool_slot ON upstream_slot_pool (hostname_pattern, slot_index);
ALTER TABLE upstream_slot_pool SET (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- NULL: only the release is known, of a direct caller; a try counts its own cooldown from last_release_at.
ALTER TABLE upstream_ip_cooldown ADD COLUMN cool_until double precision;
ALTER TABLE upstream_ip_cooldown SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- When the counted waiters stop counting unless somebody registers again.
ALTER TABLE upstream_ip_queue_depth ADD COLUMN expires_at double precision NOT NULL DEFAULT 0;
ALTER TABLE upstream_ip_queue_depth SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- The breaker's instants to the millisecond; NULL: closed, and no window. The old columns say the same in seconds.
ALTER TABLE "THROTTLE_PROTECTION"
  ADD COLUMN opened_at double precision,
  ADD COLUMN window_start_at double precision;
ALTER TABLE "THROTTLE_PROTECTION" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
