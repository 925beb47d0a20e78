/**
 * `node bench/dist/live/main.js [--short]`: the cost of 100 listeners at 10,000 state changes a second.
 *
 * The engine, a memory store and the live part of the service run in this process, the listeners in another, with real
 * sockets between them. Changes come at a fixed rate, with and without listeners in turns. The difference of the
 * processor time of this process is the cost of listening, as a share of the one core that a service uses. The rate is
 * fixed, because on a busy machine a measured rate is noisy, but the time for a fixed amount of work is not.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { loadConfig } from "@slotkeeper/server";
import { HostSettings, Telemetry } from "@slotkeeper/server/internals";
import { realClock } from "slotkeeper";
import { Listeners } from "../service/load/listeners/listeners.ts";
import { median } from "../timing.ts";

const isShort = process.argv.includes("--short");
const LISTENERS = 100;
const HOSTS = 400;
const CHANGES_PER_SECOND = 10_000;
const CHANGES_PER_CYCLE = 3;
const WINDOW_MS = isShort ? 500 : 2_000;
const TURNS = isShort ? 2 : 24;
const PACE_MS = 10;

let ids = 0;
const newName = () => `name-${ids++}`;
const silent = { debug() {}, info() {}, warn() {}, error() {}, audit() {}, isOn: () => false };
const live = { hosts: new HostSettings(loadConfig({}), (name) => name), config: { version: "bench" } };
const store = new MemoryStore({ clock: realClock });
const telemetry = new Telemetry({ store, clock: realClock, log: silent, instance: "bench", live: () => live });
const queue = new FairQueue({
  store: telemetry.store,
  clock: realClock,
  newSessionId: newName,
  newSecret: newName,
  instance: "bench",
  config: { globalMaxWaiters: -1, maxSlotPerHost: 100, maxSlotPerIp: -1 },
  observe: (event) => telemetry.observe(event),
});
telemetry.start(queue);

const server = createServer((_request, response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  telemetry.hub.add(response, {});
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const listeners = new Listeners(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);

let changes = 0;
let next = 0;
async function cycle(): Promise<void> {
  const host = `h${next++ % HOSTS}.example`;
  const answer = await queue.begin({ host, hostname: host, bucket: "b", waitMs: 1_000 });
  if (answer.result !== "granted") return;
  queue.release({ slotToken: answer.slotToken });
  changes += CHANGES_PER_CYCLE;
}

let owed = 0;
let pacedAt = performance.now();
const pacing = setInterval(() => {
  const now = performance.now();
  owed += ((now - pacedAt) * CHANGES_PER_SECOND) / CHANGES_PER_CYCLE / 1000;
  pacedAt = now;
  for (; owed >= 1; owed--) void cycle();
}, PACE_MS);

/** Processor time, in milliseconds for each thousand changes made. */
async function window(): Promise<{ cpu: number; perSecond: number }> {
  const [cpuBefore, changesBefore, startedAt] = [process.cpuUsage(), changes, performance.now()];
  await pause(WINDOW_MS);
  const { user, system } = process.cpuUsage(cpuBefore);
  const made = changes - changesBefore;
  return { cpu: (user + system) / made, perSecond: (1000 * made) / (performance.now() - startedAt) };
}

await pause(isShort ? 500 : 5_000);
const costs: number[] = [];
const rates: number[] = [];
for (let turn = 0; turn < TURNS; turn++) {
  const taken = new Map<boolean, number>();
  for (const isWatched of turn % 2 === 0 ? [false, true] : [true, false]) {
    await listeners.set(isWatched ? LISTENERS : 0);
    await pause(200);
    const { cpu, perSecond } = await window();
    taken.set(isWatched, cpu);
    rates.push(perSecond);
  }
  // Microseconds for each change, times the changes per second: the share of a core.
  costs.push((((taken.get(true) as number) - (taken.get(false) as number)) * CHANGES_PER_SECOND) / 1e6);
}
const percent = (share: number) => `${(100 * share).toFixed(2)} %`;
const sorted = [...costs].sort((a, b) => a - b);
console.log(
  `${LISTENERS} listeners, ${median(rates).toFixed(0)} changes/s (asked: ${CHANGES_PER_SECOND}), ${HOSTS} hosts`,
);
console.log(
  `cost of listening: ${percent(median(costs))} of a core, median of ${TURNS} pairs (quartiles ${percent(sorted[TURNS >> 2] as number)}, ${percent(sorted[(3 * TURNS) >> 2] as number)})`,
);
clearInterval(pacing);
listeners.close();
process.exit(0);
