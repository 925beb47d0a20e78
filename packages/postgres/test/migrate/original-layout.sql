-- A database as the original service left it, in use: made up from the columns that shared/spec/sql.md names.
CREATE TABLE upstream_slot_pool (
  id serial PRIMARY KEY,
  hostname_pattern varchar(255) NOT NULL,
  slot_index int NOT NULL,
  status varchar(20) NOT NULL DEFAULT 'available',
  ip_hash varchar(255),
  locked_at timestamptz,
  created_at timestamptz DEFAULT now(),
  UNIQUE (hostname_pattern, slot_index)
);
CREATE INDEX idx_slot_pool_status ON upstream_slot_pool (hostname_pattern, status);
CREATE TABLE upstream_ip_cooldown (
  hostname_pattern text NOT NULL,
  ip_hash text NOT NULL,
  last_release_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (hostname_pattern, ip_hash)
);
CREATE TABLE upstream_ip_queue_depth (
  hostname_pattern text NOT NULL,
  ip_hash text NOT NULL,
  waiting_count int NOT NULL DEFAULT 0,
  updated_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (hostname_pattern, ip_hash)
);
CREATE TABLE "THROTTLE_PROTECTION" (
  "HOSTNAME_HASH" text PRIMARY KEY,
  "HOSTNAME" text NOT NULL,
  "ERROR_TIMESTAMP" integer,
  "IS_PROTECTED" integer,
  "LAST_ERROR_CODE" integer,
  "OBS_WINDOW_START" integer,
  "OBS_ERROR_COUNT" integer DEFAULT 0,
  "OBS_SUCCESS_COUNT" integer DEFAULT 0,
  "CONSECUTIVE_ERROR_COUNT" integer DEFAULT 0
);

-- Its functions had other result types, and PUBLIC could call them.
CREATE FUNCTION download_release_slot(p_hostname_hash text, p_ip_bucket text, p_slot_token text, p_now_ms bigint)
RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION func_try_acquire_slot(a text, b text, c int, d int, e int, f int) RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION func_try_acquire_slot(a text) RETURNS int LANGUAGE sql AS 'SELECT 1';

INSERT INTO upstream_slot_pool (hostname_pattern, slot_index, status, ip_hash, locked_at) VALUES
  ('example.com', 1, 'locked', 'b1', now() - interval '5 seconds'),
  ('example.com', 2, 'locked', 'b2', now() - interval '2 hours'),
  ('example.com', 3, 'available', NULL, NULL),
  ('Example.com', 1, 'locked', 'b3', now()),
  ('other.example', 1, 'available', NULL, NULL),
  ('own.example', 1, 'locked', 'b1', now());
INSERT INTO upstream_ip_cooldown VALUES
  ('example.com', 'b4', now() - interval '1 second'),
  ('other.example', 'b4', now() - interval '1 hour');
INSERT INTO upstream_ip_queue_depth VALUES
  ('example.com', 'b5', 2, now()),
  ('own.example', 'b5', 1, now()),
  ('other.example', 'b5', 3, now() - interval '1 hour');
INSERT INTO "THROTTLE_PROTECTION" VALUES
  ('own-hash', 'own.example', NULL, 0, NULL, extract(epoch FROM now())::int - 5, 1, 2, 1),
  ('throttled-hash', 'throttled.example', extract(epoch FROM now())::int - 10, 1, 429, NULL, 0, 0, 0);
