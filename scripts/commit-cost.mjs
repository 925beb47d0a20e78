// What a hand-over commit costs in PostgreSQL: `npm run build && node scripts/commit-cost.mjs [--commits 2000]`.
//
// One commit is a release and the grant that it makes possible: seven records and the head. Times are the server's own, of the
// function call without the flush of the write-ahead log, beside an UPDATE of one small row in the same loop. On a busy machine
// look at the ratio and at the tenth percentile.
import { parseArgs } from "node:util";
import { dsnOf, onServer, openCluster } from "@slotkeeper/testkit/postgres";

const { values } = parseArgs({ options: { commits: { type: "string", default: "2000" } } });

const LOOP = `
DO $$
DECLARE
  v_host text := repeat('0123456789abcdef', 4);
  v_session text := 's-' || repeat('f0123456', 4);
  v_buckets integer := current_setting('cost.buckets');
  v_waiters integer := current_setting('cost.waiters');
  v_now double precision := slotkeeper_now();
  v_fence bigint := v_now * 1000;
  v_tag text;
  v_head jsonb := jsonb_build_object('hostname', 'dl.example.com', 'slots', 4, 'lastEndAt', v_now, 'avgWaitMs', 4321.125, 'isHot', true,
    'breaker', '{"code": 0, "errors": 0, "successes": 0, "consecutive": 0}'::jsonb, 'probedAt', v_now, 'turnAt', v_now);
  v_changes text;
  v_reply json;
  v_started timestamptz;
  v_us double precision;
  v_lsn pg_lsn;
BEGIN
  FOR k IN 0 .. v_waiters LOOP
    v_now := floor(slotkeeper_now() * 10) / 10;
    v_head := v_head || jsonb_build_object('fence', v_fence + k, 'now', v_now, 'meterAt', v_now, 'progress', v_now / 17.3, 'lastEndAt', v_now);
    v_changes := jsonb_build_object('head', v_head, 'puts', jsonb_build_array(
        jsonb_build_object('kind', 'lease', 'key', 'slot_' || v_host || '.abcdefghijklmnopqrst' || k, 'fence', v_fence + k, 'session', v_session || k,
          'bucket', 'bucket-' || k % v_buckets, 'instance', 'instance-one', 'grantedAt', v_now, 'endsAt', v_now + 30000, 'isReleased', false,
          'isProbe', false, 'keepUntil', v_now + 60000)) || CASE WHEN k = 0 THEN (
        SELECT jsonb_agg(jsonb_build_object('kind', 'account', 'key', 'bucket-' || i, 'weight', 1, 'usedMs', i * 1234.5, 'asOf', v_now))
        FROM generate_series(0, v_buckets - 1) i) || (
        SELECT jsonb_agg(jsonb_build_object('kind', 'waiter', 'key', v_session || i, 'instance', 'instance-one', 'bucket', 'bucket-' || i % v_buckets,
          'weight', 1, 'arrivedAt', v_now, 'deadlineAt', v_now + 60000, 'openMs', 60000, 'isInside', true)) FROM generate_series(1, v_waiters) i)
      ELSE jsonb_build_array(
        jsonb_build_object('kind', 'session', 'key', v_session || (k - 1), 'end', 'released', 'keepUntil', v_now + 60000),
        jsonb_build_object('kind', 'account', 'key', 'bucket-' || (k - 1) % v_buckets, 'weight', 1, 'usedMs', v_now / 3, 'asOf', v_now),
        jsonb_build_object('kind', 'account', 'key', 'bucket-' || k % v_buckets, 'weight', 1, 'usedMs', v_now / 7, 'asOf', v_now)) END,
      'dels', CASE WHEN k = 0 THEN '[]' ELSE jsonb_build_array(jsonb_build_array('lease', 'slot_' || v_host || '.abcdefghijklmnopqrst' || (k - 1)),
        jsonb_build_array('waiter', v_session || k)) END);
    v_started := clock_timestamp();
    v_reply := slotkeeper_commit(1, v_host, 'one', v_tag, k + 1 || '.abcdefghijkl', v_now, v_changes, '{}', 0);
    v_us := extract(epoch FROM clock_timestamp() - v_started) * 1e6;
    IF v_reply ->> 'isOk' <> 'true' THEN RAISE EXCEPTION '%', left(v_reply::text, 200); END IF;
    v_tag := k + 1 || '.abcdefghijkl';
    v_started := clock_timestamp();
    UPDATE cost_row SET n = k WHERE id = 1;
    -- The first ones are planned, and make the rows of the tail.
    IF k > 100 THEN INSERT INTO cost_sample VALUES (v_us, extract(epoch FROM clock_timestamp() - v_started) * 1e6); END IF;
    COMMIT;
    EXIT WHEN k >= current_setting('cost.commits')::integer;
  END LOOP;
END $$`;

const SUMMARY = `
SELECT round(percentile_cont(0.1) WITHIN GROUP (ORDER BY us)) AS "µs p10", round(percentile_cont(0.5) WITHIN GROUP (ORDER BY us)) AS "µs median",
  round(percentile_cont(0.1) WITHIN GROUP (ORDER BY small_us)) AS "small UPDATE p10",
  round((percentile_cont(0.1) WITHIN GROUP (ORDER BY us) / percentile_cont(0.1) WITHIN GROUP (ORDER BY small_us))::numeric, 1) AS "ratio"
FROM cost_sample`;

async function measure(client, buckets, waiters) {
  await client.query("TRUNCATE slotkeeper_host, slotkeeper_record, slotkeeper_tail, upstream_slot_pool, cost_sample");
  for (const [name, value] of Object.entries({ buckets, waiters, commits: values.commits })) {
    await client.query("SELECT set_config($1, $2, false)", [`cost.${name}`, String(value)]);
  }
  await client.query("CHECKPOINT");
  await client.query(LOOP);
  const { rows } = await client.query(SUMMARY);
  return { buckets, waiters, ...rows[0], "WAL bytes": await walOf(client) };
}

/** Of one more commit, as EXPLAIN counts it, on pages that are in the log already. The least of a few: pages are pruned now and then. */
async function walOf(client) {
  const sizes = [];
  for (let at = 0; at < 5; at++) {
    const { rows } = await client.query(`
      SELECT h.host, h.tag AS base, h.commits + 1 || '.abcdefghijkl' AS tag, slotkeeper_now() AS now,
        replace(t.changes, chr(1), h.host) AS changes FROM slotkeeper_host h
      JOIN slotkeeper_tail t ON t.host = h.host AND t.number = h.commits`);
    const [{ host, base, tag, now, changes }] = rows;
    const next = nextOf(JSON.parse(changes), now);
    const given = [host, base, tag, now, JSON.stringify(next)].map((value) => client.escapeLiteral(String(value)));
    const call = `slotkeeper_commit(1, ${given[0]}, 'one', ${given[1]}, ${given[2]}, ${given[3]}, ${given[4]}, '{}', 0)`;
    const plan = await client.query(`EXPLAIN (ANALYZE, WAL, COSTS OFF, FORMAT JSON) SELECT ${call}`);
    sizes.push(plan.rows[0]["QUERY PLAN"][0].Plan["WAL Bytes"]);
  }
  return Math.min(...sizes);
}

/** The hand-over after this one. */
function nextOf({ head, puts, dels }, now) {
  const later = (text) => text.replace(/\d+$/, (digits) => `${Number(digits) + 1}`.padStart(digits.length, "0"));
  const [lease, session, ...accounts] = puts;
  const granted = {
    ...lease,
    key: later(lease.key),
    session: later(lease.session),
    fence: head.fence + 1,
    grantedAt: now,
    endsAt: now + 30_000,
  };
  return {
    head: { ...head, fence: head.fence + 1, now, meterAt: now, progress: now / 17.3, lastEndAt: now },
    puts: [
      granted,
      { ...session, key: later(session.key) },
      ...accounts.map((account) => ({ ...account, usedMs: now / 3, asOf: now })),
    ],
    dels: dels.map(([kind, key]) => [kind, later(key)]),
  };
}

const cluster = await openCluster();
try {
  await onServer(dsnOf(cluster.dsn, cluster.template), async (client) => {
    await client.query(`SET synchronous_commit = off;
      CREATE UNLOGGED TABLE cost_sample (us double precision, small_us double precision);
      CREATE TABLE cost_row (id integer PRIMARY KEY, n integer) WITH (fillfactor = 30); INSERT INTO cost_row VALUES (1, 0)`);
    const most = Math.max(5_000, Number(values.commits));
    console.table([await measure(client, 100, most), await measure(client, 10_000, most)]);
  });
} finally {
  await cluster.close();
}
