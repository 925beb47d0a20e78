-- The breaker: packages/queue/src/store/breaker.ts has the table of its states. Kept in "THROTTLE_PROTECTION"; nothing else
-- reads or writes that table. Half open is not stored: it follows from the time and from the reader's own window.

CREATE TYPE slotkeeper_breaker AS (
  opened_at double precision,
  code integer,
  window_start_at double precision,
  errors integer,
  successes integer,
  consecutive integer
);

CREATE FUNCTION slotkeeper_breaker_closed() RETURNS slotkeeper_breaker
LANGUAGE sql IMMUTABLE AS $$ SELECT ROW(NULL, 0, NULL, 0, 0, 0)::slotkeeper_breaker $$;

-- As it stands: without an error for as long again as it was open, it has closed.
CREATE FUNCTION slotkeeper_breaker_read(p_host text, p_now double precision, p_open_ms double precision)
RETURNS slotkeeper_breaker
LANGUAGE plpgsql AS $$
DECLARE
  b slotkeeper_breaker;
BEGIN
  SELECT opened_at, coalesce("LAST_ERROR_CODE", 0), window_start_at,
    "OBS_ERROR_COUNT", "OBS_SUCCESS_COUNT", "CONSECUTIVE_ERROR_COUNT" INTO b
  FROM "THROTTLE_PROTECTION" WHERE "HOSTNAME_HASH" = p_host;
  IF NOT FOUND OR p_now - b.opened_at >= 2 * p_open_ms THEN RETURN slotkeeper_breaker_closed(); END IF;
  RETURN b;
END $$;

CREATE FUNCTION slotkeeper_breaker_write(p_host text, b slotkeeper_breaker) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "THROTTLE_PROTECTION" AS t ("HOSTNAME_HASH", "HOSTNAME", "ERROR_TIMESTAMP", "IS_PROTECTED",
    "LAST_ERROR_CODE", "OBS_WINDOW_START", "OBS_ERROR_COUNT", "OBS_SUCCESS_COUNT", "CONSECUTIVE_ERROR_COUNT",
    opened_at, window_start_at)
  VALUES (p_host, p_host, floor(b.opened_at / 1000), (b.opened_at IS NOT NULL)::integer,
    nullif(b.code, 0), floor(b.window_start_at / 1000), b.errors, b.successes, b.consecutive,
    b.opened_at, b.window_start_at)
  ON CONFLICT ("HOSTNAME_HASH") DO UPDATE SET
    "ERROR_TIMESTAMP" = coalesce(excluded."ERROR_TIMESTAMP", t."ERROR_TIMESTAMP"),
    "IS_PROTECTED" = excluded."IS_PROTECTED",
    "LAST_ERROR_CODE" = excluded."LAST_ERROR_CODE",
    "OBS_WINDOW_START" = excluded."OBS_WINDOW_START",
    "OBS_ERROR_COUNT" = excluded."OBS_ERROR_COUNT",
    "OBS_SUCCESS_COUNT" = excluded."OBS_SUCCESS_COUNT",
    "CONSECUTIVE_ERROR_COUNT" = excluded."CONSECUTIVE_ERROR_COUNT",
    opened_at = excluded.opened_at,
    window_start_at = excluded.window_start_at;
END $$;

CREATE FUNCTION slotkeeper_breaker_opened(p_code integer, p_now double precision) RETURNS slotkeeper_breaker
LANGUAGE sql IMMUTABLE AS $$ SELECT ROW(p_now, p_code, NULL, 0, 0, 0)::slotkeeper_breaker $$;

-- BreakerView of the port.
CREATE FUNCTION slotkeeper_breaker_view(b slotkeeper_breaker, p_now double precision) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN b.opened_at IS NULL THEN '{"phase": "closed"}'
    ELSE jsonb_build_object('phase', 'open', 'code', b.code, 'openForMs', p_now - b.opened_at) END
$$;

CREATE FUNCTION slotkeeper_breaker_is_tripped(b slotkeeper_breaker, p slotkeeper_policy) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  v_total integer := b.errors + b.successes;
  v_percent double precision;
BEGIN
  IF b.consecutive = 0 THEN RETURN false; END IF;
  v_percent := 100::double precision * b.errors / v_total;
  RETURN (p.breaker_consecutive > 0 AND b.consecutive >= p.breaker_consecutive)
    OR (p.breaker_min_samples > 0 AND v_total >= p.breaker_min_samples AND v_percent >= p.breaker_ratio_percent)
    OR (p.breaker_fast_min_samples > 0 AND v_total >= p.breaker_fast_min_samples
        AND v_percent >= p.breaker_fast_ratio_percent);
END $$;

-- An upstream's answer. Under the host's lock. p_is_probe: it counts as one of a half-open breaker whatever the window.
CREATE FUNCTION slotkeeper_breaker_report(
  p_host text, p slotkeeper_policy, p_status integer, p_is_probe boolean, p_now double precision
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_is_error boolean := p_status = ANY (p.breaker_codes);
  b slotkeeper_breaker;
BEGIN
  IF NOT v_is_error AND p_status NOT BETWEEN 200 AND 399 THEN RETURN; END IF;
  b := slotkeeper_breaker_read(p_host, p_now, p.breaker_open_ms);
  IF b.opened_at IS NULL THEN
    IF b.window_start_at IS NULL OR p_now - b.window_start_at > p.breaker_window_ms THEN
      b := ROW(NULL, 0, p_now, 0, 0, 0)::slotkeeper_breaker;
    END IF;
    IF v_is_error THEN
      b.errors := b.errors + 1;
      b.consecutive := b.consecutive + 1;
      b.code := p_status;
    ELSE
      b.successes := b.successes + 1;
      b.consecutive := 0;
    END IF;
    IF slotkeeper_breaker_is_tripped(b, p) THEN b := slotkeeper_breaker_opened(p_status, p_now); END IF;
  ELSIF p_is_probe OR p_now - b.opened_at >= p.breaker_open_ms THEN
    b := CASE WHEN v_is_error THEN slotkeeper_breaker_opened(p_status, p_now) ELSE slotkeeper_breaker_closed() END;
  ELSE
    -- Late answers of old requests teach an open breaker nothing.
    RETURN;
  END IF;
  PERFORM slotkeeper_breaker_write(p_host, b);
END $$;
