import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { Fleet } from "../fleet/fleet.ts";
import { ServeProcess } from "../fleet/serve-process.ts";
import { CONSTRAINED_HOST, CONSTRAINTS } from "../load/constrained-host.ts";
import { Load } from "../load/load.ts";
import { CONSTRAINED_PLAN, DEMO_PLAN, type HostPlan, manyHosts } from "../load/load-plan.ts";
import { Random } from "../random/random.ts";
import { judge, type Sample, type SoakVerdict } from "./judge.ts";

/**
 * A long load with small faults on services that are never restarted: two instances on PostgreSQL and one with a journal. What a day of use
 * would let grow (memory, files, tables, the journal) must be level after the first minutes. `judge.ts` has the bounds.
 */

export interface SoakOptions {
  readonly seconds: number;
  /** What happens before this time is warming up. */
  readonly warmUpSeconds: number;
  readonly sampleSeconds: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
  readonly log: (line: string) => void;
}

export interface SoakReport extends SoakVerdict {
  readonly seconds: number;
  readonly granted: number;
  readonly faults: number;
  readonly samples: readonly Sample[];
}

const FAIR_QUEUE = {
  maxSlotPerIp: 2,
  maxWaitMs: 8_000,
  sessionIdleSeconds: 20,
  cleanup: { intervalSeconds: 30 },
  hosts: { [CONSTRAINED_HOST]: CONSTRAINTS },
};
const FAULT_EVERY_MS = 5_000;
/** Hosts that are used for a while and never again. */
const PASSING_HOSTS = 40;

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-soak-"));
  const fleet = await Fleet.start({ instances: 2, fairQueue: FAIR_QUEUE, postgres: { isDurable: true } });
  const single = await startJournaled(folder);
  const services = [...fleet.processes, single];
  const database = new Client({ connectionString: fleet.dsn });
  await database.connect();
  const loads = services.map(({ url }) => new Load({ url }, [...DEMO_PLAN, CONSTRAINED_PLAN, ...manyHosts(50)]));
  const world: World = { urls: services.map(({ url }) => url), database, random: new Random(options.seed) };
  const samples: Sample[] = [];
  const startedAt = performance.now();
  let faults = 0;
  let passing = passingLoads(world.urls, faults);
  const isStopped = () => options.signal?.aborted === true;
  try {
    while (secondsSince(startedAt) < options.seconds && !isStopped()) {
      const nextSampleAt = performance.now() + options.sampleSeconds * 1000;
      while (performance.now() < nextSampleAt && !isStopped()) {
        await pause(FAULT_EVERY_MS);
        await causeFault(world);
        faults++;
      }
      await Promise.all(passing.map((load) => load.stop()));
      passing = passingLoads(world.urls, faults);
      samples.push(await sampleOf(services, database, folder, secondsSince(startedAt)));
      options.log(lineOf(samples.at(-1) as Sample));
    }
    const seconds = secondsSince(startedAt);
    const granted = loads.reduce((sum, { counts }) => sum + counts.granted, 0);
    return { ...judge(samples, options.warmUpSeconds), seconds, granted, faults, samples };
  } finally {
    await Promise.all([...loads, ...passing].map((load) => load.stop()));
    await database.end();
    await single.kill();
    await fleet.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function startJournaled(folder: string): Promise<ServeProcess> {
  const file = join(folder, "config.json");
  const backend = { memory: { journal: join(folder, "journal") } };
  writeFileSync(file, JSON.stringify({ listen: "127.0.0.1:0", logLevel: "warn", backend, fairQueue: FAIR_QUEUE }));
  return ServeProcess.start(file);
}

function passingLoads(urls: readonly string[], round: number): Load[] {
  const plans: HostPlan[] = manyHosts(PASSING_HOSTS).map((plan, at) => ({
    ...plan,
    hostname: `passing-${round}-${at}.example`,
    pauseMs: [50, 500],
    holdMs: [10, 100],
  }));
  return urls.map((url) => new Load({ url }, plans));
}

interface World {
  readonly urls: readonly string[];
  readonly database: Client;
  readonly random: Random;
}

/** Faults that a service meets every day and that must leave nothing behind. */
async function causeFault({ urls, database, random }: World): Promise<void> {
  const url = random.pick(urls);
  switch (random.int(0, 3)) {
    case 0:
      await database.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'slotkeeper' AND random() < 0.5",
      );
      return;
    case 1:
      await Promise.all(Array.from({ length: 20 }, () => abandonCall(url, random)));
      return;
    case 2:
      await Promise.all(Array.from({ length: 20 }, () => badCall(url, random)));
      return;
    default:
      await Promise.all(Array.from({ length: 20 }, () => neverReleased(url, random)));
  }
}

/** Asks for a slot and resets the connection while the call waits. */
function abandonCall(url: string, random: Random): Promise<void> {
  const { port, hostname } = new URL(url);
  const body = JSON.stringify({
    hostname: "exports.reports.example",
    ipBucket: `gone-${random.int(0, 99)}`,
    waitMs: 5_000,
  });
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    socket
      .on("error", () => {})
      .on("close", () => resolve())
      .write(`POST /api/v0/fairqueue/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    setTimeout(() => socket.resetAndDestroy(), random.int(1, 50));
  });
}

async function badCall(url: string, random: Random): Promise<void> {
  const body = random.pick(["{", "[]", '{"hostname":5}', '{"queryToken":"x"}', '{"slotToken":"slot_x.y"}']);
  const route = random.pick(["acquire", "release", "renew", "cancel", "nowhere"]);
  await fetch(`${url}/api/v0/fairqueue/${route}`, { method: "POST", body }).then((response) => response.text());
}

/** A client that gets a slot and dies: its lease must end by itself. */
async function neverReleased(url: string, random: Random): Promise<void> {
  const body = JSON.stringify({ hostname: `dies-${random.int(0, 20)}.example`, ipBucket: "dead", waitMs: 50 });
  await fetch(`${url}/api/v0/fairqueue/acquire`, { method: "POST", body }).then((response) => response.text());
}

const TABLES = ["slotkeeper_host", "slotkeeper_record", "upstream_slot_pool", "upstream_ip_cooldown"];

async function sampleOf(
  services: readonly ServeProcess[],
  database: Client,
  folder: string,
  atSeconds: number,
): Promise<Sample> {
  const figures: Record<string, number> = {};
  for (const [at, { pid }] of services.entries()) {
    figures[`memory of service ${at + 1}, MB`] = residentBytes(pid) / 2 ** 20;
    figures[`open files of service ${at + 1}`] = readdirSync(`/proc/${pid}/fd`).length;
  }
  for (const table of TABLES) {
    const { rows } = await database.query<{ count: number }>(`SELECT count(*)::integer AS count FROM ${table}`);
    figures[`rows of ${table}`] = rows[0]?.count ?? 0;
  }
  figures["journal, MB"] = statSync(join(folder, "journal")).size / 2 ** 20;
  return { atSeconds, figures };
}

function residentBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
}

function lineOf({ atSeconds, figures }: Sample): string {
  const memory = Object.entries(figures).filter(([name]) => name.startsWith("memory"));
  const rows = Object.entries(figures).filter(([name]) => name.startsWith("rows"));
  return `${Math.round(atSeconds)} s: memory ${shown(memory)} MB; rows ${shown(rows)}`;
}

const shown = (entries: [string, number][]): string => entries.map(([, value]) => Math.round(value)).join(", ");
const secondsSince = (at: number): number => (performance.now() - at) / 1000;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
