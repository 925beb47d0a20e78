-- The tables that other programs know, as the original service made them.
CREATE TABLE IF NOT EXISTS upstream_slot_pool (
  id serial PRIMARY KEY,
  hostname_pattern text NOT NULL,
  slot_index int NOT NULL,
  status text NOT NULL DEFAULT 'available',
  ip_hash text,
  locked_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS upstream_ip_cooldown (
  hostname_pattern text NOT NULL,
  ip_hash text NOT NULL,
  last_release_at timestamptz NOT NULL,
  PRIMARY KEY (hostname_pattern, ip_hash)
);
CREATE TABLE IF NOT EXISTS upstream_ip_queue_depth (
  hostname_pattern text NOT NULL,
  ip_hash text NOT NULL,
  waiting_count int NOT NULL DEFAULT 0,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (hostname_pattern, ip_hash)
);
CREATE TABLE IF NOT EXISTS "THROTTLE_PROTECTION" (
  "HOSTNAME_HASH" text PRIMARY KEY,
  "HOSTNAME" text NOT NULL,
  "ERROR_TIMESTAMP" int,
  "IS_PROTECTED" int,
  "LAST_ERROR_CODE" int,
  "OBS_WINDOW_START" int,
  "OBS_ERROR_COUNT" int NOT NULL DEFAULT 0,
  "OBS_SUCCESS_COUNT" int NOT NULL DEFAULT 0,
  "CONSECUTIVE_ERROR_COUNT" int NOT NULL DEFAULT 0
);
