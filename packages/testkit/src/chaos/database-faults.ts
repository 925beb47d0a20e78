import { HOT_HOST, QUIET_HOSTS } from "./chaos-load.ts";
import type { Fault } from "./faults.ts";
import { asAdmin, hostKey, type World } from "./world.ts";

/**
 * Faults of the database. Nothing can be granted while it is unreachable, so the recovery counts from the end of the
 * fault.
 */
export const DATABASE_FAULTS = {
  "pause-database": {
    title: "SIGSTOP of every process of PostgreSQL for 8 s",
    countsFrom: "end",
    async run({ fleet: { database }, pause }) {
      await database.command("pause");
      await pause(8_000);
      await database.command("resume");
    },
  },
  "restart-fast": {
    title: "fast restart of the database, 1 s in between",
    countsFrom: "end",
    run: (world) => restart(world, "stop fast"),
  },
  "restart-immediate": {
    title: "immediate restart (crash recovery), 1 s in between",
    countsFrom: "end",
    run: (world) => restart(world, "stop immediate"),
  },
  "terminate-backends": {
    title: "all backends of the service are terminated, every 100 ms for 4 s",
    countsFrom: "end",
    async run(world) {
      const sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'fleet'";
      await asAdmin(world, async (client) => {
        for (let times = 0; times < 40; times++) {
          await client.query(sql);
          await world.pause(100);
        }
      });
    },
  },
  "revoke-privilege": {
    title: "the service may not commit for 4 s",
    countsFrom: "end",
    async run(world) {
      const change = (sql: string) => asAdmin(world, (client) => client.query(sql));
      await change("REVOKE EXECUTE ON FUNCTION slotkeeper_commit FROM slotkeeper_service");
      await world.pause(4_000);
      await change("GRANT EXECUTE ON FUNCTION slotkeeper_commit TO slotkeeper_service");
    },
  },
  "lock-host": {
    title: "a stranger locks the row of a quiet host for 10 s",
    countsFrom: "start",
    stalls: (random) => random.pick(QUIET_HOSTS),
    run: lock,
  },
  "lock-hot-host": {
    title: "a stranger locks the row of the hot host for 10 s, and all its calls pile up",
    countsFrom: "end",
    stalls: () => HOT_HOST,
    run: lock,
  },
  "disk-full": {
    title: "the database's disk is full for 4 s, WAL included",
    countsFrom: "end",
    needsLimitedData: true,
    async run(world) {
      const { database } = world.fleet;
      await database.command("fill");
      // On a full disk the server cannot write a new segment of the log: it crashes, and cannot recover.
      if (world.random.chance(0.5)) {
        await asAdmin(world, (client) => client.query("SELECT pg_switch_wal()")).catch(() => {});
      }
      await world.pause(4_000);
      await database.command("free");
      await database.command("start");
    },
  },
} satisfies Record<string, Fault>;

async function restart({ fleet: { database }, pause }: World, stop: "stop fast" | "stop immediate"): Promise<void> {
  await database.command(stop);
  await pause(1_000);
  await database.command("start");
}

async function lock(world: World, host: string | undefined): Promise<void> {
  await asAdmin(world, async (client) => {
    await client.query("BEGIN");
    await client.query("SELECT FROM slotkeeper_host WHERE host = $1 FOR UPDATE", [hostKey(host ?? "")]);
    await world.pause(10_000);
    await client.query("ROLLBACK");
  });
}
