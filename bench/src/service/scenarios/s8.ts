import { setTimeout as pause } from "node:timers/promises";
import { RawConnection } from "../load/raw-connection.ts";
import { residentBytes } from "../load/server-usage.ts";
import { SlotClient } from "../load/slot-client.ts";
import { percentile } from "../load/statistics.ts";
import { atMost, atMostTimes, type LoadContext, type Scenario } from "../scenario.ts";

const ACQUIRE = "/api/v0/fairqueue/acquire";

/** p99 of acquire and release at a host of its own, in microseconds. */
async function unrelated(context: LoadContext, requests: number): Promise<number> {
  const client = await SlotClient.open(context.url, context.waiting);
  const times: number[] = [];
  for (let n = 0; n < requests; n++) {
    const askedAt = performance.now();
    const slot = await client.acquire("other.example", "b", () => false);
    times.push((performance.now() - askedAt) * 1000);
    await client.release(slot?.slotToken ?? "");
  }
  client.close();
  return percentile(times, 99);
}

/** Opened by the hundred: a backlog of connections is not what is measured. */
async function hold(context: LoadContext, polls: number): Promise<RawConnection[]> {
  const held: RawConnection[] = [];
  while (held.length < polls) {
    const group = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(context.url)));
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
    maxSlotPerIp: 0,
    maxWaitersPerHost: 0,
    globalMaxWaiters: 0,
    maxWaitMs: 600_000,
    pollWindowMs: 600_000,
    zombieTimeoutSeconds: 600,
  },
  async load(context) {
    const polls = context.isShort ? 1000 : 10_000;
    const requests = context.isShort ? 500 : 2000;
    // Young code is slower than any number of held polls makes old code.
    await unrelated(context, 6 * requests);
    const idle = await unrelated(context, requests);
    // The one slot of the host, so that the rest are held. The bare server holds whoever asks for it.
    const [taker] = await hold({ ...context, isShort: true }, 1);
    await pause(2000);
    const before = residentBytes(context.serverPid);
    const held = await hold(context, polls);
    await pause(3000);
    const bytes = (residentBytes(context.serverPid) - before) / polls;
    const busy = await unrelated(context, requests);
    for (const connection of [taker, ...held]) connection?.close();
    return {
      "bytes/poll": bytes,
      "unrelated p99 µs, idle": idle,
      "unrelated p99 µs, held": busy,
      "held ÷ idle": busy / idle,
    };
  },
  goals: [atMostTimes("slotkeeper", "bytes/poll", 1.5, "bare"), atMost("slotkeeper", "held ÷ idle", 2)],
};
