-- Roles for a schema that `slotkeeper migrate` set up. Run it as the schema's owner, with the right to create roles, and
-- again after each update:
--
--   psql "$DSN" -f roles.sql
--   psql "$DSN" -1 -c 'SET LOCAL search_path = slots' -f roles.sql        for a schema other than public
--
--   slotkeeper_service    for `slotkeeper serve`, by its dsn or by the role claim of its token for PostgREST: calls the store's
--                         functions, and has no right to any table except the list of migrations
--   slotkeeper_reader     for people and dashboards: reads everything except secrets, and changes nothing
--   slotkeeper_postgrest  for programs behind PostgREST: calls the functions of docs/reference/sql.md, and has no right to any table
--
-- None of them can log in. Grant them to roles that can:
--
--   CREATE ROLE keeper LOGIN PASSWORD '…' IN ROLE slotkeeper_service;
--   GRANT slotkeeper_service TO authenticator;                    for a service behind PostgREST: only as a token's role
--   GRANT slotkeeper_postgrest TO authenticator;                  for programs: in PostgREST's db-anon-role or a token's role
--
-- Nothing is granted to PUBLIC.
DO $$
DECLARE
  v_role text;
BEGIN
  IF to_regclass(format('%I.slotkeeper_migration', current_schema())) IS NULL THEN
    RAISE EXCEPTION 'The schema % is not set up: run slotkeeper migrate first, and set the search_path to its schema', current_schema();
  END IF;
  FOREACH v_role IN ARRAY ARRAY['slotkeeper_service', 'slotkeeper_reader', 'slotkeeper_postgrest'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_role) THEN EXECUTE format('CREATE ROLE %I NOLOGIN', v_role); END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), v_role);
  END LOOP;
END $$;

GRANT EXECUTE ON FUNCTION slotkeeper_commit, slotkeeper_commit_all, slotkeeper_read, slotkeeper_beat, slotkeeper_instances, slotkeeper_peek,
  slotkeeper_host_keys, slotkeeper_totals, slotkeeper_forget_hosts, slotkeeper_forget_rows, slotkeeper_token_keys,
  slotkeeper_channel, slotkeeper_ready, slotkeeper_missing_rights, slotkeeper_check_schema,
  slotkeeper_schema_number TO slotkeeper_service;
-- The service checks at its start whether the schema has its version.
GRANT SELECT ON slotkeeper_migration TO slotkeeper_service;

GRANT EXECUTE ON FUNCTION download_try_acquire_slot, download_release_slot, download_register_fq_waiter,
  download_release_fq_waiter, download_check_throttle_protection, download_upsert_throttle_protection, func_try_acquire_slot,
  func_release_fair_slot, func_cleanup_zombie_slots, func_cleanup_ip_cooldown, func_cleanup_queue_depth TO slotkeeper_postgrest;

-- Not slotkeeper_token_key, and nothing that contains slot tokens: a slot can be released by anyone with its token.
GRANT EXECUTE ON FUNCTION slotkeeper_instances, slotkeeper_host_keys, slotkeeper_totals TO slotkeeper_reader;
GRANT SELECT ON slotkeeper_host, slotkeeper_record, slotkeeper_floor, slotkeeper_instance, slotkeeper_migration,
  upstream_ip_cooldown, upstream_ip_queue_depth, "THROTTLE_PROTECTION" TO slotkeeper_reader;
GRANT SELECT (id, hostname_pattern, slot_index, status, ip_hash, locked_at, created_at, fence, session, instance, granted_at,
  ends_at, is_released, is_probe, keep_until) ON upstream_slot_pool TO slotkeeper_reader;
