// Measures the cost of commits in PostgreSQL: `npm run build && node scripts/commit-cost.mjs [--commits 2000]`.
//
//   crowd       eight releases, the eight grants that they make possible, and eight arrivals, in one commit
//   hand-over   a release and the grant that it makes possible: seven records and the head, on a host with many buckets and waiters
//   new host    the first commit of a host: its limits, an account and a lease
//   grant       a lease and its account, on a host that is idle
//   release     its end: the lease goes, the account changes, the end of the session is kept
//   read 8 back what an instance gets that missed eight hand-overs
//
// With `--alone`, no other instance is alive, so the commits leave no names in the ring.
//
// The commits are created before the measurement, by the code of the store. Times are those of the server: the function
// call, next to an UPDATE of one small row in the same loop, on a database that syncs its commits, as users run it
// (`--unsynced` for the other). The sync itself follows the call, and each commit waits for it. On a busy machine, use
// the ratio and the tenth percentile. `--aa` measures everything twice: the difference is the noise of the machine.
import { parseArgs } from "node:util";
import { commitArguments } from "@slotkeeper/postgres/internals";
import { dsnOf, onServer, openCluster } from "@slotkeeper/testkit/postgres";

const { values } = parseArgs({
  options: {
    commits: { type: "string", default: "2000" },
    alone: { type: "boolean", default: false },
    unsynced: { type: "boolean", default: false },
    aa: { type: "boolean", default: false },
  },
});
const COMMITS = Number(values.commits);
/** After this number of commits, statements are planned and the rows of the ring exist. */
const WARM_UP = 100;
const HOST = "0123456789abcdef".repeat(4);
const INSTANCE = "instance-one";
const POLICY = {
  minHoldMs: 0,
  smoothMs: 0,
  slots: 4,
  slotsPerBucket: 1,
  waitersPerBucket: 50,
  waiters: 1000,
  leaseMs: 30_000,
};

/**
 * Consecutive commits of one host. Instants are those of the start; only `p_now` is the time of the database at the
 * call.
 */
class Commits {
  #head;
  #fence;
  #count = 0;

  constructor(host, now, slots = 4) {
    this.host = host;
    this.now = now;
    this.#fence = Math.floor(now * 1000);
    this.#head = {
      fence: 0,
      now,
      progress: now / 17.3,
      meterAt: now,
      lastEndAt: now,
      avgWaitMs: 4321.125,
      slots,
      breaker: { code: 0, errors: 0, successes: 0, consecutive: 0 },
      weighted: { isHot: true, triedAt: now, turnAt: 1234.5 },
      hostname: "dl.example.com",
    };
  }

  next(kind, puts, dels = []) {
    const base = this.#count === 0 ? undefined : this.#tag();
    this.#count++;
    const now = this.now + this.#count / 10;
    const records = puts({ now });
    const meters = { meterAt: now, progress: now / 17.3, lastEndAt: now };
    this.#head = { ...this.#head, fence: this.#fence, now, ...meters };
    const changes = { head: this.#head, puts: records, dels };
    const rest = {
      host: this.host,
      instance: "one",
      base,
      tag: this.#tag(),
      now,
      hasOthers: !values.alone,
      wake: [],
      conflicts: 0,
    };
    return { kind, p_schema: 1, ...commitArguments({ ...rest, changes }) };
  }

  token(number) {
    return `slot_${this.host}.abcdefghijklmnopqrst${number}`;
  }

  lease(number, bucket, { now }) {
    const times = { grantedAt: now, endsAt: now + 3_600_000, keepUntil: now + 60_000.5 };
    const rest = {
      session: sessionOf(number),
      bucket,
      instance: INSTANCE,
      isReleased: false,
      isProbe: false,
      width: 1,
    };
    return { kind: "lease", key: this.token(number), fence: ++this.#fence, ...rest, ...times };
  }

  #tag() {
    return `${this.#count}.abcdefghijkl`;
  }
}

const sessionOf = (number) => `s-${"f0123456".repeat(4)}${number}`;
const accountOf = (key, now, usedMs) => ({ kind: "account", key, weight: 1, usedMs, asOf: now });
const endOf = (number, now) => ({
  kind: "ending",
  key: sessionOf(number),
  end: "released",
  keepUntil: now + 60_000.5,
});

function waiterOf(number, bucket, now) {
  const rest = { instance: INSTANCE, bucket, weight: 1, openMs: 60_000, isInside: true };
  return { kind: "waiter", key: sessionOf(number), ...rest, arrivedAt: now, deadlineAt: now + 60_000 };
}

/** Sessions get their slots in the order of their numbers; 48 wait. */
function crowds(now) {
  const [size, waiting, buckets] = [8, 48, 32];
  const commits = new Commits(HOST, now, 16);
  const bucketOf = (number) => `bucket-${number % buckets}`;
  const numbers = (from, count) => Array.from({ length: count }, (_, at) => from + at);
  const first = commits.next("setup", (at) => [
    ...numbers(0, size).map((number) => commits.lease(number, bucketOf(number), at)),
    ...numbers(size, waiting).map((number) => waiterOf(number, bucketOf(number), now)),
    ...numbers(0, buckets).map((number) => accountOf(bucketOf(number), now, 0)),
  ]);
  const rest = numbers(1, COMMITS + WARM_UP).map((turn) => {
    const granted = numbers(turn * size, size);
    const puts = (at) => [
      ...granted.map((number) => endOf(number - size, at.now)),
      ...granted
        .flatMap((number) => [number, number - size])
        .map((number) => accountOf(bucketOf(number), at.now, at.now / 3)),
      ...granted.map((number) => waiterOf(number + waiting, bucketOf(number), at.now)),
      ...granted.map((number) => commits.lease(number, bucketOf(number), at)),
    ];
    const dels = granted.flatMap((number) => [
      ["lease", commits.token(number - size)],
      ["waiter", sessionOf(number)],
    ]);
    return commits.next("crowd", puts, dels);
  });
  return [first, ...rest];
}

function handOvers(now, buckets, waiters) {
  const commits = new Commits(HOST, now);
  const bucketOf = (number) => `bucket-${number % buckets}`;
  const first = commits.next("setup", (at) => [
    commits.lease(0, bucketOf(0), at),
    ...Array.from({ length: buckets }, (_, number) => accountOf(`bucket-${number}`, now, number * 1234.5)),
    ...Array.from({ length: waiters }, (_, number) => waiterOf(number + 1, bucketOf(number + 1), now)),
  ]);
  const rest = Array.from({ length: COMMITS + WARM_UP }, (_, at) => {
    const number = at + 1;
    const puts = ({ now: at }) => [
      commits.lease(number, bucketOf(number), { now: at }),
      endOf(number - 1, at),
      accountOf(bucketOf(number - 1), at, at / 3),
      accountOf(bucketOf(number), at, at / 7),
    ];
    const dels = [
      ["lease", commits.token(number - 1)],
      ["waiter", sessionOf(number)],
    ];
    return commits.next("hand-over", puts, dels);
  });
  return [first, ...rest];
}

function newHosts(now) {
  return Array.from({ length: COMMITS + WARM_UP }, (_, number) => {
    const commits = new Commits(`${HOST.slice(8)}${String(number).padStart(8, "0")}`, now);
    const limits = { kind: "limits", key: "", policy: POLICY, loadedAt: now };
    return commits.next("new host", (at) => [limits, accountOf("b", at.now, 0), commits.lease(0, "b", at)]);
  });
}

function idleHost(now) {
  const commits = new Commits(HOST, now);
  const first = commits.next("setup", (at) => [accountOf("b", at.now, 0)]);
  const rest = Array.from({ length: COMMITS + WARM_UP }, (_, number) => {
    const grant = (at) => [commits.lease(number, "b", at), accountOf("b", at.now, at.now / 3)];
    const release = (at) => [endOf(number, at.now), accountOf("b", at.now, at.now / 7)];
    return [commits.next("grant", grant), commits.next("release", release, [["lease", commits.token(number)]])];
  });
  return [first, ...rest.flat()];
}

/** A column for each argument of `slotkeeper_commit`. */
const CALLS = `SELECT format('CREATE UNLOGGED TABLE cost_call (at serial, kind text, %s)', string_agg(format('%I %s', a.name, a.type::regtype), ', ')) AS sql,
  string_agg(format('%1$I => %2$s', a.name, CASE a.name WHEN 'p_now' THEN 'v_now' ELSE 'c.' || a.name END), ', ') AS list
FROM pg_proc p, unnest(p.proargnames, p.proargtypes::oid[]) a (name, type) WHERE p.proname = 'slotkeeper_commit'`;

const loopOf = (list) => `
DO $$
DECLARE
  c cost_call;
  v_now double precision;
  v_reply json;
  v_started timestamptz;
  v_us double precision;
BEGIN
  FOR c IN SELECT * FROM cost_call ORDER BY at LOOP
    v_now := slotkeeper_now();
    v_started := clock_timestamp();
    v_reply := slotkeeper_commit(${list});
    v_us := extract(epoch FROM clock_timestamp() - v_started) * 1e6;
    IF v_reply ->> 'isOk' <> 'true' THEN RAISE EXCEPTION '%', left(v_reply::text, 200); END IF;
    v_started := clock_timestamp();
    UPDATE cost_row SET n = c.at WHERE id = 1;
    INSERT INTO cost_sample VALUES (c.at, c.kind, v_us, extract(epoch FROM clock_timestamp() - v_started) * 1e6);
    COMMIT;
  END LOOP;
END $$`;

const SUMMARY = `
SELECT kind AS "commit", round(percentile_cont(0.1) WITHIN GROUP (ORDER BY us)) AS "µs p10",
  round(percentile_cont(0.5) WITHIN GROUP (ORDER BY us)) AS "µs median",
  round(percentile_cont(0.1) WITHIN GROUP (ORDER BY small_us)) AS "small UPDATE p10",
  round((percentile_cont(0.1) WITHIN GROUP (ORDER BY us) / percentile_cont(0.1) WITHIN GROUP (ORDER BY small_us))::numeric, 1) AS "ratio"
FROM cost_sample WHERE kind <> 'setup' AND at > ${2 * WARM_UP} GROUP BY kind ORDER BY kind`;

/** Reads what the last eight commits changed, as a conflict returns it. */
const READS = `
DO $$
DECLARE
  v_tag text;
  v_reply json;
  v_started timestamptz;
  v_us double precision;
BEGIN
  SELECT split_part(tag, '.', 1)::integer - 8 || '.abcdefghijkl' INTO v_tag FROM slotkeeper_host WHERE host = '${HOST}';
  FOR i IN 1 .. ${COMMITS} LOOP
    v_started := clock_timestamp();
    v_reply := slotkeeper_read(1, '${HOST}', v_tag);
    v_us := extract(epoch FROM clock_timestamp() - v_started) * 1e6;
    IF v_reply #>> '{tail,kind}' <> 'changes' THEN RAISE EXCEPTION '%', left(v_reply::text, 200); END IF;
    v_started := clock_timestamp();
    UPDATE cost_row SET n = i WHERE id = 1;
    INSERT INTO cost_sample VALUES (1000000 + i, 'read 8 back', v_us, extract(epoch FROM clock_timestamp() - v_started) * 1e6);
    COMMIT;
  END LOOP;
END $$`;

async function measure(client, list, about, calls, more = []) {
  await client.query(
    "TRUNCATE slotkeeper_host, slotkeeper_record, slotkeeper_ring, upstream_slot_pool, cost_sample, cost_call RESTART IDENTITY",
  );
  // The last ones are used to measure the write-ahead log.
  const timed = calls.slice(0, -10);
  await client.query(
    "INSERT INTO cost_call SELECT c.* FROM jsonb_array_elements($1) WITH ORDINALITY e (call, at), jsonb_populate_record(NULL::cost_call, e.call || jsonb_build_object('at', e.at)) c",
    [JSON.stringify(timed)],
  );
  await client.query("CHECKPOINT");
  for (const text of [loopOf(list), ...more]) await client.query(text);
  const { rows } = await client.query(SUMMARY);
  const wal = await walOf(client, calls.slice(-10));
  return rows.map((row) => ({ ...about, ...row, "WAL bytes": wal.get(row.commit) }));
}

/**
 * The log of further commits, as EXPLAIN counts it, on pages that are already in the log. The least of a few, because
 * pages are sometimes pruned.
 */
async function walOf(client, calls) {
  const least = new Map();
  for (const { kind, ...given } of calls) {
    const names = Object.keys(given);
    const list = names.map((name, at) => (name === "p_now" ? "p_now => slotkeeper_now()" : `${name} => $${at + 1}`));
    const sent = Object.values({ ...given, p_now: "unused" });
    const plan = await client.query(
      `EXPLAIN (ANALYZE, WAL, COSTS OFF, FORMAT JSON) SELECT slotkeeper_commit(${list.join(", ")}), $${names.indexOf("p_now") + 1}::text`,
      sent,
    );
    const bytes = plan.rows[0]["QUERY PLAN"][0].Plan["WAL Bytes"];
    least.set(kind, Math.min(bytes, least.get(kind) ?? Number.POSITIVE_INFINITY));
  }
  return least;
}

const cluster = await openCluster({ isDurable: !values.unsynced });
try {
  await onServer(dsnOf(cluster.dsn, cluster.template), async (client) => {
    const { rows } = await client.query(CALLS);
    await client.query(`${rows[0].sql};
      CREATE UNLOGGED TABLE cost_sample (at integer, kind text, us double precision, small_us double precision);
      CREATE TABLE cost_row (id integer PRIMARY KEY, n integer) WITH (fillfactor = 30); INSERT INTO cost_row VALUES (1, 0)`);
    const now = Number((await client.query("SELECT slotkeeper_now() AS now")).rows[0].now);
    const waiters = COMMITS + 5_000;
    const { list } = rows[0];
    for (let round = 0; round < (values.aa ? 2 : 1); round++) {
      console.table([
        ...(await measure(client, list, { buckets: 32, waiters: 48 }, crowds(now))),
        ...(await measure(
          client,
          list,
          { buckets: 100, waiters },
          handOvers(now, 100, waiters),
          values.alone ? [] : [READS],
        )),
        ...(await measure(client, list, { buckets: 10_000, waiters }, handOvers(now, 10_000, waiters))),
        ...(await measure(client, list, {}, newHosts(now))),
        ...(await measure(client, list, {}, idleHost(now))),
      ]);
    }
  });
} finally {
  await cluster.close();
}
