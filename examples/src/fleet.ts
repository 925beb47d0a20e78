// `npm run fleet`: PostgreSQL, three instances of the service, a round-robin proxy and a load, with a live table.
// Ctrl-C ends it all. Kill an instance by its pid and watch: the others continue its sessions, and a new one replaces
// it. At the end the independent checker judges every answer that the clients got.
import { setMaxListeners } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { SlotClient } from "@slotkeeper/client";
import { Fleet, RoundRobinProxy } from "@slotkeeper/testkit/fleet";
import { formatVerdict, HistoryRecorder, judgeHistory, recordingFetch } from "@slotkeeper/testkit/history";
import { FleetTable } from "./fleet/fleet-table.ts";
import { Holds } from "./fleet/holds.ts";

const SLOTS = 8;
const SESSIONS = 60;
const BUCKETS = 20;
const HOLD_MS = 250;
const HOSTNAME = "upstream.example";
const LOOKS_EVERY_MS = 500;
const RECOVERY_MS = 10_000;

const stop = new AbortController();
const { signal } = stop;
// Every session listens to it.
setMaxListeners(0, signal);
for (const name of ["SIGINT", "SIGTERM"] as const) process.on(name, () => stop.abort());

console.log("Starting PostgreSQL and three instances …");
const fairQueue = { maxSlotPerHost: SLOTS, maxSlotPerIp: 1 };
const fleet = await Fleet.start({ instances: 3, fairQueue });
const proxy = await RoundRobinProxy.start(fleet.urls);
const recorder = new HistoryRecorder();
recorder.note({ kind: "facts", at: 0, fairQueue, instances: 3, isFresh: true, transitMs: 500, promptMs: 10_000 });
const keeper = new SlotClient({ url: proxy.url, fetch: recordingFetch(recorder) });
const holds = new Holds(SLOTS);

/** Asks for a slot, uses it for a while, and asks again. */
async function session(number: number): Promise<void> {
  const asked = { hostname: HOSTNAME, bucket: `client-${number % BUCKETS}`, signal };
  while (!signal.aborted) {
    try {
      await keeper.run(asked, async () => {
        const hold = holds.begin();
        await pause(HOLD_MS * (0.5 + Math.random()), undefined, { signal }).catch(() => {});
        holds.end(hold);
      });
    } catch {
      if (!signal.aborted) holds.failed++;
    }
  }
}

/** Starts an instance again that has ended, as a supervisor does. */
async function supervise(): Promise<void> {
  while (!signal.aborted) {
    for (const [at, instance] of fleet.processes.entries()) {
      if (instance.isRunning || signal.aborted) continue;
      const from = recorder.now() - LOOKS_EVERY_MS;
      proxy.replace(at, (await fleet.launch(at)).url);
      // While an instance is away, and until the others have noticed, no time is promised.
      recorder.note({ kind: "fault", fault: "delay", from, until: recorder.now() + RECOVERY_MS, note: "killed" });
    }
    await pause(LOOKS_EVERY_MS);
  }
}

const table = new FleetTable(fleet, proxy, holds, { dashboard: fleet.urls[0] ?? "", isTerminal: process.stdout.isTTY });
const sessions = Array.from({ length: SESSIONS }, (_, number) => session(number));
const supervised = supervise();
try {
  while (!signal.aborted) {
    await pause(1_000, undefined, { signal }).catch(() => {});
    if (!signal.aborted) await table.draw();
  }
} finally {
  await Promise.all([...sessions, supervised]);
  proxy.close();
  await fleet.stop();
}
recorder.close();
const verdict = judgeHistory(recorder.lines);
console.log(`\nThe independent checker on what the clients saw: ${formatVerdict(verdict)}`);
console.log(`\nStopped: ${holds.granted} slots were handed out. Nothing is left running.`);
// The client may still repeat a last release to a service that has ended.
process.exit(verdict.violations.length === 0 ? 0 : 1);
