import type { OrderName } from "@slotkeeper/protocol";
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { Scenario } from "./scenario.ts";

/** Where a simulated client gets its slots: the engine, or a control that must fail. */
export interface SlotSource {
  acquire(bucket: string): Promise<{ release(): void }>;
  close(): void;
}

export type SourceName = OrderName | "count-grants" | "weighted-scheduler";

export function sourceFor(name: SourceName, scenario: Scenario, clock: Clock): SlotSource {
  return name === "count-grants" ? countGrants(scenario) : engine(name, scenario, clock);
}

/** The real engine, with the waiter pool and the deadline disabled, because they are not measured. */
function engine(name: OrderName | "weighted-scheduler", scenario: Scenario, clock: Clock): SlotSource {
  let ids = 0;
  const newId = () => `id-${ids++}`;
  const store = new MemoryStore({ clock });
  let isClosed = false;
  const isWeighted = name === "weighted-scheduler";
  const queue = new FairQueue({
    store,
    clock,
    newSessionId: newId,
    newSecret: newId,
    instance: "fair",
    config: {
      maxSlotPerHost: scenario.slots,
      maxSlotPerIp: scenario.cap ?? 0,
      maxWaitersPerHost: 0,
      globalMaxWaiters: -1,
      maxWaitMs: 1e9,
      pollWindowMs: 1e9,
      order: name === "fifo" ? "fifo" : "slot-seconds",
      weightedScheduler: { enabled: isWeighted },
      hosts: { h: { weights: weightsOf(scenario) } },
    },
  });
  return {
    async acquire(bucket) {
      const answer = await queue.begin({ host: "h", hostname: "h", bucket, waitMs: 1e9 });
      // At the end of the run, waiters are rejected and do not ask again.
      if (isClosed) return new Promise(() => {});
      if (answer.result !== "granted") throw new Error(`Expected a slot, got ${JSON.stringify(answer)}`);
      return { release: () => queue.release({ slotToken: answer.slotToken }) };
    },
    close() {
      isClosed = true;
      queue.close();
    },
  };
}

/** A control: the bucket with the fewest grants per weight is next, however long it holds its slots. */
function countGrants(scenario: Scenario): SlotSource {
  const cap = scenario.cap ?? Number.POSITIVE_INFINITY;
  const weights = weightsOf(scenario);
  const buckets = new Map<string, { grants: number; held: number; waiting: (() => void)[] }>();
  let held = 0;
  const serve = () => {
    while (held < scenario.slots) {
      const able = [...buckets].filter(([, { waiting, held }]) => waiting.length > 0 && held < cap);
      able.sort(([a, one], [b, two]) => one.grants / (weights[a] ?? 1) - two.grants / (weights[b] ?? 1));
      const next = able[0]?.[1];
      if (next === undefined) return;
      held++;
      next.held++;
      next.grants++;
      next.waiting.shift()?.();
    }
  };
  return {
    acquire(name) {
      const bucket = buckets.get(name) ?? { grants: 0, held: 0, waiting: [] };
      buckets.set(name, bucket);
      return new Promise((resolve) => {
        bucket.waiting.push(() =>
          resolve({
            release() {
              held--;
              bucket.held--;
              serve();
            },
          }),
        );
        serve();
      });
    },
    close: () => {},
  };
}

function weightsOf({ groups }: Scenario): Record<string, number> {
  return Object.fromEntries(groups.map(({ name, weight }) => [name, weight ?? 1]));
}
