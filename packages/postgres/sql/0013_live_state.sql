-- What people and monitoring ask of the whole store: the names of its hosts, sums over them, and which instances live.

-- An instance's notice counts until ends_at, by the database's clock. A fleet is small, and a notice is renewed in place.
CREATE TABLE slotkeeper_instance (
  instance text PRIMARY KEY,
  about jsonb NOT NULL,
  seen_at double precision NOT NULL,
  ends_at double precision NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Says that an instance lives, for so long; 0 takes its notice away. Whoever speaks removes notices that ended long ago.
CREATE FUNCTION slotkeeper_announce(p_instance text, p_ttl_ms double precision, p_about jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET jit = off SET lock_timeout = '3s' AS $$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  DELETE FROM slotkeeper_instance
  WHERE instance IN (SELECT instance FROM slotkeeper_instance WHERE ends_at < v_now - 60000 FOR UPDATE SKIP LOCKED);
  IF p_ttl_ms <= 0 THEN
    DELETE FROM slotkeeper_instance WHERE instance = p_instance;
  ELSE
    INSERT INTO slotkeeper_instance VALUES (p_instance, p_about, v_now, v_now + p_ttl_ms)
    ON CONFLICT (instance) DO UPDATE SET about = excluded.about, seen_at = excluded.seen_at, ends_at = excluded.ends_at;
  END IF;
END $$;

CREATE FUNCTION slotkeeper_instances() RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  RETURN coalesce((
    SELECT jsonb_agg(jsonb_build_object('instance', instance, 'seenAgoMs', v_now - seen_at, 'about', about) ORDER BY instance)
    FROM slotkeeper_instance WHERE ends_at > v_now), '[]');
END $$;

CREATE FUNCTION slotkeeper_host_keys() RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
  SELECT coalesce(jsonb_agg(host ORDER BY host), '[]') FROM slotkeeper_host
$$;

-- StoreTotals of the port, in one pass over the hosts and one over the slots. Locks nothing: sums of moments that are
-- close together, not of one.
CREATE FUNCTION slotkeeper_totals() RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET jit = off AS $$
DECLARE
  v_now double precision := slotkeeper_now();
BEGIN
  RETURN (
    SELECT jsonb_build_object(
      'hosts', count(*),
      'slots', coalesce(sum((h.policy).slots), 0),
      'inFlight', (SELECT count(*) FROM upstream_slot_pool WHERE status = 'locked' AND ends_at > v_now),
      'waiting', coalesce(sum((h.ledger).waiting), 0),
      'open', count(*) FILTER (WHERE slotkeeper_breaker_view(
        slotkeeper_breaker_read(h.host, v_now, (h.policy).breaker_open_ms), v_now) ->> 'phase' <> 'closed'),
      'spaced', count(*) FILTER (WHERE (h.policy).smooth_ms > 0 AND h.last_end_at + (h.policy).smooth_ms > v_now))
    FROM slotkeeper_host h);
END $$;

DO $$
DECLARE
  v_function regprocedure;
BEGIN
  FOR v_function IN SELECT oid FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace AND proname LIKE 'slotkeeper\_%' LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', v_function);
  END LOOP;
END $$;
