-- The role that `slotkeeper serve` logs in with. Run roles.sql first, then this, then set its password. It can be run again.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'keeper') THEN CREATE ROLE keeper LOGIN; END IF;
END $$;
GRANT slotkeeper_service TO keeper;
