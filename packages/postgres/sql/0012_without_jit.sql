-- Before version 18 a plan that cannot do without what `enable_seqscan = off` forbids is priced as if it took hours, and is
-- compiled to machine code for that: 100 to 300 ms for a snapshot that runs for half a millisecond. No call here is long
-- enough for a compiler.
DO $$
DECLARE
  v_function regprocedure;
BEGIN
  FOR v_function IN
    SELECT oid FROM pg_proc WHERE pronamespace = quote_ident(current_schema())::regnamespace AND prosecdef
      AND proname ~ '^(slotkeeper|download|func)_'
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET jit = off', v_function);
  END LOOP;
END $$;
