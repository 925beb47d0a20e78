-- Numbers leave the database with all their digits, whatever `extra_float_digits` the session has: of the database, or left
-- there by another client of the same pooler. The order is decided by the same bits in SQL and in TypeScript.
DO $$
DECLARE
  v_function regprocedure;
BEGIN
  FOR v_function IN
    SELECT oid FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace AND prosecdef
      AND starts_with(proname, 'slotkeeper_')
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET extra_float_digits = 1', v_function);
  END LOOP;
END $$;
