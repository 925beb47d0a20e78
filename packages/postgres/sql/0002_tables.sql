-- The service's tables, and the columns that the service adds to the four tables of the original layout.
--
-- The state of a host is a head and records (packages/queue/src/book/records.ts). The database keeps it and makes no
-- decisions:
--
--   slotkeeper_host            one row per host: the head, the tag, and the lock
--   slotkeeper_record          all records except leases and cooldowns
--   upstream_slot_pool         leases: one row for each lease, updated in place. status = 'locked': the row holds a lease,
--                              which is live until ends_at and occupies as many slots as its width
--   upstream_ip_cooldown       cooldowns (cool_until), and releases by direct callers (is_direct)
--   upstream_ip_queue_depth    waiters that direct callers registered; the service's waiters are records
--   "THROTTLE_PROTECTION"      a copy of the head's breaker, for people and direct callers
--   slotkeeper_ring            the names of the records that the last 64 commits of each host changed
--   slotkeeper_floor           the highest fence of forgotten hosts
--   slotkeeper_instance        which instances are alive
--   slotkeeper_token_key       the key that signs session tokens
--
-- Rules that every function keeps:
--   TABLE1 Only the transaction that holds the lock of slotkeeper_host writes rows of that host, in any table. No
--     statement locks two hosts. Cleanup skips hosts that are locked.
--   TABLE2 The clock is read after the lock is taken. A commit reads it just before it swaps the tag. If the row has
--     changed since, the commit starts again, with the lock.
--   TABLE3 No indexed column of a row in use is updated, so that updates are HOT. Exceptions: func_try_acquire_slot
--     gives its row a new id, and a row of a forgotten host moves to another host.
--   TABLE4 A row of upstream_slot_pool is created only if a host needs more slots than it ever had and no row of a
--     forgotten host is left. So refused attempts and forgotten hosts use up no ids. A transaction that is rolled back
--     after it created rows does: a shared call that failed, whose commits are then sent alone, or a broken connection.
--
-- Names: `host` (hostname_pattern, "HOSTNAME_HASH") is the host's key: hostnameHash, otherwise the SHA-256 in hex of
-- the lower-cased hostname. `bucket` (ip_hash) is the bucket's name; '' is the shared bucket. Instants are milliseconds
-- since 1970 as double precision, as in JavaScript.

-- Heads and records are JSON as codec.ts of packages/queue encodes them. Columns that most commits change come
-- last: the write-ahead log contains everything between the first and the last changed byte.
CREATE TABLE slotkeeper_host (
  host text PRIMARY KEY,
  slots double precision NOT NULL,
  is_breaker_new boolean NOT NULL,
  reserved_for text,
  reserved_until double precision NOT NULL DEFAULT 0,
  offers_until double precision NOT NULL,
  fence_before bigint NOT NULL,
  fence bigint NOT NULL,
  last_now double precision NOT NULL,
  updated_at double precision NOT NULL,
  tag text NOT NULL,
  head json NOT NULL
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON COLUMN slotkeeper_host.slots IS 'Like fence and last_now, a field of the head that every commit needs. Infinity: no limit.';
COMMENT ON COLUMN slotkeeper_host.is_breaker_new IS
  'The last commit changed the breaker. Like fence_before, it saves the commit from reading the row before it writes it.';
COMMENT ON COLUMN slotkeeper_host.reserved_for IS
  'Until reserved_until only this instance may commit. Empty: any instance, but no direct caller may take a slot.';
COMMENT ON COLUMN slotkeeper_host.offers_until IS 'The latest time at which an offer lapses. After it, offers need not be counted.';
COMMENT ON COLUMN slotkeeper_host.fence_before IS 'The fence before the last commit.';
COMMENT ON COLUMN slotkeeper_host.last_now IS 'The latest store time of any commit: now of the head.';
COMMENT ON COLUMN slotkeeper_host.updated_at IS 'When the last commit was made, by the clock of the database.';

CREATE TABLE slotkeeper_record (
  host text NOT NULL,
  kind text NOT NULL,
  key text NOT NULL,
  data json NOT NULL,
  PRIMARY KEY (host, kind, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_insert_threshold = -1);
COMMENT ON TABLE slotkeeper_record IS 'kind: account, waiter, session, offer, absence, budget or limits. data: the other fields of the record.';

CREATE TABLE slotkeeper_ring (
  host text NOT NULL,
  place smallint NOT NULL,
  base text,
  tag text NOT NULL,
  names text[] NOT NULL,
  PRIMARY KEY (host, place)
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE slotkeeper_ring IS
  'A commit is at the place of its number modulo 64; the number is the part of its tag before the dot. names: "kind key" of the records that it changed. A commit that no other instance needs is missing.';

-- Rows are only inserted, so that two hosts that are forgotten at the same time do not wait for each other. Cleanup
-- keeps the highest.
CREATE TABLE slotkeeper_floor (fence bigint NOT NULL);
CREATE INDEX slotkeeper_floor_fence ON slotkeeper_floor (fence);

CREATE TABLE slotkeeper_instance (
  instance text PRIMARY KEY,
  about jsonb NOT NULL,
  seen_at double precision NOT NULL,
  ends_at double precision NOT NULL
) WITH (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON COLUMN slotkeeper_instance.ends_at IS 'The instance counts as alive until then.';

CREATE TABLE slotkeeper_token_key (
  id smallint PRIMARY KEY CHECK (id = 1),
  secret text NOT NULL
);

-- Leases. A direct caller's lease has an empty instance, and the session direct:<fence> (download_try_acquire_slot) or
-- direct-id:<fence> (func_try_acquire_slot).
ALTER TABLE upstream_slot_pool
  ADD COLUMN token text,
  ADD COLUMN fence bigint,
  ADD COLUMN session text,
  ADD COLUMN instance text,
  ADD COLUMN granted_at double precision,
  ADD COLUMN ends_at double precision,
  ADD COLUMN is_released boolean NOT NULL DEFAULT false,
  ADD COLUMN is_probe boolean NOT NULL DEFAULT false,
  ADD COLUMN keep_until double precision,
  ADD COLUMN width integer NOT NULL DEFAULT 1,
  ADD COLUMN charge json;
COMMENT ON COLUMN upstream_slot_pool.width IS 'How many slots of the host the lease occupies.';
ALTER TABLE upstream_slot_pool SET (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE upstream_slot_pool IS 'hostname_pattern is empty in rows of forgotten hosts, which the next host uses.';

ALTER TABLE upstream_ip_cooldown
  ADD COLUMN cool_until double precision,
  ADD COLUMN is_direct boolean NOT NULL DEFAULT false;
ALTER TABLE upstream_ip_cooldown SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON COLUMN upstream_ip_cooldown.cool_until IS 'The cooldown by the limits of the host. NULL: only a release by a direct caller is known.';
COMMENT ON COLUMN upstream_ip_cooldown.is_direct IS
  'A direct caller released here. Each attempt has its own cooldown, counted from last_release_at, so the row is kept for an hour.';

-- The waiters of direct callers have no names. Each has its own end, so that a waiter that died stops counting even if
-- others of its bucket keep registering.
ALTER TABLE upstream_ip_queue_depth
  ADD COLUMN expires_at double precision NOT NULL DEFAULT 0,
  ADD COLUMN expiries double precision[] NOT NULL DEFAULT '{}',
  ADD COLUMN hostname text;
ALTER TABLE upstream_ip_queue_depth SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
-- download_release_fq_waiter finds a host only by its name. The index contains only rows that need it.
CREATE INDEX upstream_ip_queue_depth_name ON upstream_ip_queue_depth (hostname, ip_hash) WHERE hostname IS NOT NULL;
COMMENT ON COLUMN upstream_ip_queue_depth.expiries IS
  'When each registered waiter stops counting, in ascending order. waiting_count is their number at the last write, expires_at the last of them.';
COMMENT ON COLUMN upstream_ip_queue_depth.hostname IS 'In lower case. Set only if the host''s key is not the SHA-256 of this name.';

-- The breaker's instants in milliseconds. The old columns have the same instants in seconds.
ALTER TABLE "THROTTLE_PROTECTION"
  ADD COLUMN opened_at double precision,
  ADD COLUMN window_start_at double precision;
ALTER TABLE "THROTTLE_PROTECTION" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- The database's clock, in milliseconds. A function, so that tests can replace it.
CREATE FUNCTION slotkeeper_now() RETURNS double precision
LANGUAGE sql VOLATILE AS $$ SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 $$;

-- The number that every call contains. It changes with the records or the rules, not with every migration.
CREATE FUNCTION slotkeeper_schema_number() RETURNS integer
LANGUAGE sql IMMUTABLE AS $$ SELECT 1 $$;

CREATE FUNCTION slotkeeper_check_schema(p_schema integer) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF p_schema IS DISTINCT FROM slotkeeper_schema_number() THEN
    RAISE EXCEPTION 'This database has schema number % and the caller %: all instances of a fleet must run the same version of slotkeeper',
      slotkeeper_schema_number(), coalesce(p_schema::text, 'none') USING ERRCODE = 'SK001', HINT = 'Run slotkeeper migrate with the newer version, and restart instances of the older one.';
  END IF;
END $$;

REVOKE ALL ON FUNCTION slotkeeper_now, slotkeeper_schema_number, slotkeeper_check_schema FROM PUBLIC;
