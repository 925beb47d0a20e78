/** The limiters that are compared, and what each can do of the job. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import { Fleet, ServeProcess } from "@slotkeeper/testkit/fleet";
import { isBuilt } from "../service/scenarios/s1-with.ts";
import { LEASE_MS, LIMITS } from "./job.ts";
import { missingRedis, startRedis } from "./redis.ts";

export type SubjectId = "slotkeeper" | "slotkeeper-fleet" | "bullmq" | "bullmq-by-tenant" | "bottleneck" | "effect";

/** What keeps the limits of one run. */
export interface Backend {
  /** The address for a process. */
  addressOf(process: number): string;
  /** A process was killed: what runs beside it is killed, too, and starts again. */
  killBeside?(process: number): Promise<void>;
  stop(): Promise<void>;
}

export interface Subject {
  readonly id: SubjectId;
  readonly about: string;
  /** What it cannot do, and what was done instead. */
  readonly note?: string;
  /** Why it cannot run here. */
  missing(): string | undefined;
  start(): Promise<Backend>;
}

export const PROCESSES = 3;

const BUDGETS = { tokens: { limit: LIMITS.tokensPerSecond, perSeconds: 1, burst: LIMITS.burst } };

/** The settings that this version has. `missing`: what it does not have yet. */
function settings(): { readonly fairQueue: FairQueueConfig; readonly missing: readonly string[] } {
  const keys = { keys: { user: { slots: LIMITS.user }, tenant: { slots: LIMITS.tenant } } };
  const order = { order: "budget:tokens", budgets: BUDGETS };
  const fairQueue = {
    maxSlotPerHost: LIMITS.total,
    maxSlotPerIp: isBuilt(keys) ? -1 : LIMITS.tenant,
    zombieTimeoutSeconds: LEASE_MS / 1000,
    budgets: BUDGETS,
    ...(isBuilt(keys) ? keys : {}),
    ...(isBuilt(order) ? order : {}),
  } as FairQueueConfig;
  const missing = [
    ...(isBuilt(keys) ? [] : ["limit for each user"]),
    ...(isBuilt(order) ? [] : ["order by cost (tenants share slot time instead)"]),
  ];
  return { fairQueue, missing };
}

const OURS = settings();
const NOT_YET = OURS.missing.length === 0 ? [] : [`this version has no ${OURS.missing.join(", and no ")}`];

async function startService(): Promise<Backend> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-bench-"));
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ listen: "127.0.0.1:0", logLevel: "warn", fairQueue: OURS.fairQueue }));
  const service = await ServeProcess.start(file);
  const stop = async () => {
    await service.kill();
    rmSync(folder, { recursive: true });
  };
  return { addressOf: () => service.url, stop };
}

async function startServiceFleet(): Promise<Backend> {
  const fleet = await Fleet.start({ instances: PROCESSES, fairQueue: OURS.fairQueue, postgres: { isDurable: true } });
  const killBeside = async (process: number) => {
    await fleet.processes[process]?.kill();
    await fleet.launch(process);
  };
  return { addressOf: (process) => fleet.urls[process] ?? "", killBeside, stop: () => fleet.stop() };
}

async function startOnRedis(): Promise<Backend> {
  const { address, stop } = await startRedis();
  return { addressOf: () => address, stop };
}

function ours(id: SubjectId, about: string, start: Subject["start"], ...notes: string[]): Subject {
  const note = [...notes, ...NOT_YET].join("; ");
  return { id, about, start, missing: () => undefined, ...(note === "" ? {} : { note }) };
}

const onRedis = { missing: missingRedis, start: startOnRedis };

export const SUBJECTS: readonly Subject[] = [
  ours("slotkeeper", "Slotkeeper, one service", startService),
  ours(
    "slotkeeper-fleet",
    "Slotkeeper, three instances on PostgreSQL",
    startServiceFleet,
    "each process calls its own instance, and both are killed at the same time",
  ),
  {
    id: "bullmq",
    about: "BullMQ, one queue",
    note: "`setGlobalConcurrency` for the total, `setGlobalRateLimit` for the tokens: it counts jobs, so it gets the number of jobs of mean cost. It has no limit for each user or tenant: groups are part of BullMQ Pro. The estimate is not settled",
    ...onRedis,
  },
  {
    id: "bullmq-by-tenant",
    about: "BullMQ, a queue for each tenant",
    note: "each queue has a sixth of the rate, and each process one worker for each queue, because no limit spans queues. It has no limit for each user. The estimate is not settled",
    ...onRedis,
  },
  {
    id: "bottleneck",
    about: "bottleneck",
    note: "four limiters, one inside the other (user, tenant, total, tokens), because a weight counts for slots and tokens alike. `expiration` as its lease, `incrementReservoir` to settle",
    ...onRedis,
  },
  {
    id: "effect",
    about: "Effect, `RateLimiter`",
    note: "token bucket for the tokens. It limits rates only: slots are its `Semaphore` in each process, with a third of each limit. The estimate is not settled",
    ...onRedis,
  },
];
