import type { ServeProcessOptions } from "../fleet/serve-process.ts";
import { LEASE_SECONDS } from "./chaos-load.ts";
import type { Fault } from "./faults.ts";
import { asAdmin, type World } from "./world.ts";

/** Faults of instances, their clocks, networks and clients. The rest of the fleet must continue. */
export const INSTANCE_FAULTS = {
  "kill-instance": {
    title: "kill -9 of an instance, restarted after 3 s",
    countsFrom: "start",
    async run(world) {
      const at = anyInstance(world);
      await end(world, at, "kill");
      await world.pause(3_000);
      await launch(world, at);
    },
  },
  "stop-instance": {
    title: "SIGSTOP of an instance for 10 s, then SIGCONT",
    countsFrom: "start",
    async run(world) {
      const process = world.fleet.processes[anyInstance(world)];
      process?.signal("SIGSTOP");
      await world.pause(10_000);
      process?.signal("SIGCONT");
    },
  },
  "rolling-restart": {
    title: "rolling restart: SIGTERM and a new process, one instance after the other",
    countsFrom: "start",
    failsNoRequest: true,
    async run(world) {
      for (const at of world.fleet.processes.keys()) {
        await end(world, at, "terminate");
        await launch(world, at);
        await world.pause(500);
      }
    },
  },
  "skew-clock": {
    title: "an instance runs with its clock up to a minute wrong for 6 s",
    countsFrom: "start",
    async run(world) {
      const at = anyInstance(world);
      const clockSkewMs = world.random.int(5_000, 60_000) * world.random.pick([-1, 1]);
      await end(world, at, "terminate");
      await launch(world, at, { clockSkewMs });
      await world.pause(6_000);
      await end(world, at, "terminate");
      await launch(world, at);
    },
  },
  "black-hole": {
    title: "the connections of an instance to the database go silent; new ones work",
    countsFrom: "start",
    run: (world) => blackHole(world, { isForNew: false }),
  },
  "cut-off": {
    title: "an instance cannot reach the database for 6 s: its connections and new ones go silent",
    // Releases that it has acknowledged reach the database when it does.
    countsFrom: "end",
    run: (world) => blackHole(world, { isForNew: true }),
  },
  "kill-listener": {
    title: "the LISTEN backends of all instances are terminated",
    countsFrom: "start",
    async run(world) {
      const sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slotkeeper listen'";
      await asAdmin(world, (client) => client.query(sql));
      await world.pause(1_000);
    },
  },
  "kill-client": {
    title: `a client dies with a slot of the hot host; the slot is back when its lease (${LEASE_SECONDS} s) ends`,
    countsFrom: "start",
    recoversWithinMs: 2 * LEASE_SECONDS * 1000,
    run: ({ load }) => load.killHolder(),
  },
} satisfies Record<string, Fault>;

function anyInstance({ fleet, random }: World): number {
  return random.int(0, fleet.processes.length - 1);
}

async function blackHole(world: World, which: { readonly isForNew: boolean }): Promise<void> {
  const way = world.fleet.way(anyInstance(world));
  way.blackHole(which);
  await world.pause(6_000);
  way.heal();
}

/** Ends an instance. Its counters end with it. */
async function end({ fleet, counts }: World, at: number, how: "kill" | "terminate"): Promise<void> {
  const process = fleet.processes[at];
  if (process === undefined) return;
  await counts.beforeEnd(process);
  await process[how]();
}

async function launch({ fleet, proxy }: World, at: number, options?: ServeProcessOptions): Promise<void> {
  const { url } = await fleet.launch(at, options);
  proxy.replace(at, url);
}
