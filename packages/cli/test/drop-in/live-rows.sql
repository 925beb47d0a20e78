-- What a service of the original has in its tables while callers use files.example.com: four of its five slots are held.
INSERT INTO upstream_slot_pool (hostname_pattern, slot_index, status, ip_hash, locked_at) VALUES
  ('files.example.com', 1, 'locked', 'holder-1', now() - interval '3 seconds'),
  ('files.example.com', 2, 'locked', 'holder-2', now() - interval '2 seconds'),
  ('files.example.com', 3, 'locked', 'holder-3', now() - interval '1 second'),
  ('files.example.com', 4, 'locked', 'holder-4', now()),
  ('files.example.com', 5, 'available', NULL, NULL);
INSERT INTO upstream_ip_cooldown VALUES ('files.example.com', 'holder-1', now() - interval '1 minute');
INSERT INTO upstream_ip_queue_depth VALUES ('files.example.com', 'holder-2', 1, now());
INSERT INTO "THROTTLE_PROTECTION" VALUES
  (encode(sha256('files.example.com'), 'hex'), 'files.example.com', NULL, 0, NULL, extract(epoch FROM now())::int - 5, 1, 9, 0);
