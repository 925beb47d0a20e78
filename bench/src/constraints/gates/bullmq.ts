import { Queue, QueueEvents, Worker } from "bullmq";
import type { Gate, OpenGate } from "../gate.ts";
import { type Job, LEASE_MS, LIMITS, MEAN_ESTIMATE, TENANTS } from "../job.ts";

/** A queue and its limits. The limiter of BullMQ counts jobs: as many as the tokens suffice for. */
interface QueuePlan {
  readonly name: string;
  readonly globalConcurrency: number;
  readonly tokensPerSecond: number;
  readonly estimate: number;
  readonly concurrency: number;
}

const PROCESSES = 3;

/** One queue with its concurrency and its rate. */
export const openBullmq: OpenGate = async (address, work) => {
  const queue = await openQueue(address, work, {
    name: "work",
    globalConcurrency: LIMITS.total,
    tokensPerSecond: LIMITS.tokensPerSecond,
    estimate: MEAN_ESTIMATE,
    concurrency: LIMITS.total,
  });
  return { run: (job) => queue.run(job) };
};

/** A queue for each tenant. No limit spans queues, so the total is what the workers of all processes run at a time. */
export const openBullmqByTenant: OpenGate = async (address, work) => {
  const queues = new Map<string, Gate>();
  for (const { name, estimate } of TENANTS) {
    const plan: QueuePlan = {
      name,
      globalConcurrency: LIMITS.tenant,
      tokensPerSecond: LIMITS.tokensPerSecond / TENANTS.length,
      estimate,
      concurrency: Math.floor(LIMITS.total / TENANTS.length / PROCESSES),
    };
    queues.set(name, await openQueue(address, work, plan));
  }
  return { run: async (job) => queues.get(job.tenant)?.run(job) };
};

/** A job runs in any of the processes. The job of a process that was killed runs again in another one. */
async function openQueue(address: string, work: (job: Job) => Promise<number>, plan: QueuePlan): Promise<Gate> {
  const { hostname: host, port } = new URL(address);
  const connection = { host, port: Number(port) };
  const queue = new Queue<Job>(plan.name, { connection }).setMaxListeners(0);
  await queue.setGlobalConcurrency(plan.globalConcurrency);
  // The window is the time of ten jobs, so that the rounding to whole jobs does not matter.
  await queue.setGlobalRateLimit(10, Math.round((10_000 * plan.estimate) / plan.tokensPerSecond));
  const events = new QueueEvents(plan.name, { connection });
  await events.waitUntilReady();
  const options = { concurrency: plan.concurrency, lockDuration: LEASE_MS, stalledInterval: LEASE_MS / 3 };
  const worker = new Worker<Job>(plan.name, ({ data }) => work(data), { connection, ...options, maxStalledCount: 100 });
  await worker.waitUntilReady();
  return {
    async run(job) {
      const added = await queue.add("job", job, { removeOnComplete: true, removeOnFail: true });
      await added.waitUntilFinished(events);
    },
  };
}
