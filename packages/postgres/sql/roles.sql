-- Roles for a schema that `slotkeeper migrate` set up. Run it as the schema's owner, with the right to create roles, and
-- again after each update:
--
--   psql "$DSN" -f roles.sql
--   psql "$DSN" -1 -c 'SET LOCAL search_path = slots' -f roles.sql        for another schema than public
--
--   slotkeeper_service    for the dsn of `slotkeeper serve`: calls the service's functions, and touches no table
--   slotkeeper_reader     for people and dashboards: reads everything but secrets, and changes nothing
--   slotkeeper_postgrest  for programs behind PostgREST: calls the functions of docs/reference/sql.md, and touches no table
--
-- None of them can log in. Grant them to those who can:
--
--   CREATE ROLE keeper LOGIN PASSWORD '…' IN ROLE slotkeeper_service;
--   GRANT slotkeeper_postgrest TO authenticator;                  and name it in PostgREST's db-anon-role or a token's role
--
-- Nothing is granted to PUBLIC.
DO $$
DECLARE
  v_schema text := current_schema();
  v_role text;
  r record;
BEGIN
  IF to_regclass(format('%I.slotkeeper_migration', v_schema)) IS NULL THEN
    RAISE EXCEPTION 'The schema % is not set up: run slotkeeper migrate first, and set the search_path to its schema', v_schema;
  END IF;
  FOREACH v_role IN ARRAY ARRAY['slotkeeper_service', 'slotkeeper_reader', 'slotkeeper_postgrest'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_role) THEN EXECUTE format('CREATE ROLE %I NOLOGIN', v_role); END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', v_schema, v_role);
  END LOOP;

  -- The functions that are meant to be called are the owner's (SECURITY DEFINER); all others are their inner parts.
  FOR r IN
    SELECT p.oid::regprocedure AS function, p.proname, p.prosecdef FROM pg_proc p
    WHERE p.pronamespace = quote_ident(v_schema)::regnamespace AND p.proname ~ '^(slotkeeper|download|func)_'
  LOOP
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC, slotkeeper_service, slotkeeper_reader, slotkeeper_postgrest', r.function);
    CONTINUE WHEN NOT r.prosecdef;
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', r.function,
      CASE WHEN r.proname LIKE 'slotkeeper\_%' THEN 'slotkeeper_service' ELSE 'slotkeeper_postgrest' END);
    IF r.proname = 'slotkeeper_snapshot' THEN EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO slotkeeper_reader', r.function); END IF;
  END LOOP;

  FOR r IN
    SELECT c.oid::regclass AS name, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = quote_ident(v_schema)::regnamespace AND c.relkind = 'r' AND c.relname ~ '^(slotkeeper|upstream)_|^THROTTLE_PROTECTION$'
      -- Who knows a slot's token owns the slot; who knows the key makes sessions.
      AND c.relname <> 'slotkeeper_token_key' AND NOT (c.relname = 'upstream_slot_pool' AND a.attname = 'token')
    GROUP BY c.oid
  LOOP
    EXECUTE format('REVOKE ALL ON %s FROM PUBLIC, slotkeeper_service, slotkeeper_reader, slotkeeper_postgrest', r.name);
    EXECUTE format('GRANT SELECT (%s) ON %s TO slotkeeper_reader', r.columns, r.name);
  END LOOP;
  -- What the service asks at its start: whether the schema is its own version's.
  EXECUTE format('GRANT SELECT ON %I.slotkeeper_migration TO slotkeeper_service', v_schema);
END $$;
