import { setTimeout as pause } from "node:timers/promises";
import { median } from "../../timing.ts";
import { RawConnection } from "../load/raw-connection.ts";
import { residentBytes } from "../load/server-usage.ts";
import { SlotClient } from "../load/slot-client.ts";
import { percentile } from "../load/statistics.ts";
import { atMost, atMostTimes, type LoadContext, type Scenario } from "../scenario.ts";

const ACQUIRE = "/api/v0/fairqueue/acquire";
const BLOCKS = 8;

/**
 * The p99 of acquire and release at a separate host, in microseconds: the median of blocks, so that a period in which
 * other programs used the processor counts only once.
 */
async function unrelated(client: SlotClient, requests: number): Promise<number> {
  const blocks: number[] = [];
  for (let block = 0; block < BLOCKS; block++) {
    const times: number[] = [];
    for (let n = 0; n < requests / BLOCKS; n++) {
      const askedAt = performance.now();
      const slot = await client.acquire("other.example", "b", () => false);
      times.push((performance.now() - askedAt) * 1000);
      await client.release(slot?.slotToken ?? "");
    }
    blocks.push(percentile(times, 99));
  }
  return median(blocks);
}

/** Opens connections by the hundred, because a backlog of connections is not measured here. */
async function hold(context: LoadContext, polls: number): Promise<RawConnection[]> {
  const held: RawConnection[] = [];
  while (held.length < polls) {
    const many = Math.min(100, polls - held.length);
    const group = await Promise.all(Array.from({ length: many }, () => RawConnection.open(context.url)));
    for (const connection of group) {
      const message = { hostname: "held.example", ipBucket: `b${held.length % 1000}`, waitMs: 600_000 };
      connection.post(ACQUIRE, message).catch(() => {});
      held.push(connection);
    }
    await pause(10);
  }
  return held;
}

export const s8: Scenario = {
  id: "S8",
  title: "10,000 held polls (short: 1,000)",
  subjects: ["bare", "slotkeeper"],
  fairQueue: {
    maxSlotPerHost: 1,
    maxSlotPerIp: -1,
    maxWaitersPerHost: 0,
    globalMaxWaiters: -1,
    maxWaitMs: 600_000,
    pollWindowMs: 600_000,
    zombieTimeoutSeconds: 600,
  },
  async load(context) {
    const polls = context.isShort ? 1000 : 10_000;
    const requests = context.isShort ? 800 : 4000;
    // The same connection before and after, and compiled code: uncompiled code is slower than any number of held polls
    // makes it.
    const client = await SlotClient.open(context.url, context.waiting);
    await unrelated(client, 3 * requests);
    const idle = await unrelated(client, requests);
    // The first one takes the only slot of the host. The others fill the space that warming up has left in the heap.
    const first = await hold(context, polls / 5);
    await pause(1000);
    const before = residentBytes(context.serverPid);
    const held = await hold(context, polls);
    await pause(2000);
    const bytes = (residentBytes(context.serverPid) - before) / polls;
    const busy = await unrelated(client, requests);
    for (const connection of [...first, ...held]) connection.close();
    client.close();
    return {
      "bytes/poll": bytes,
      "unrelated p99 µs, idle": idle,
      "unrelated p99 µs, held": busy,
      "held ÷ idle": busy / idle,
    };
  },
  goals: [atMostTimes("slotkeeper", "bytes/poll", 1.5, "bare"), atMost("slotkeeper", "held ÷ idle", 2)],
};
