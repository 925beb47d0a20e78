/**
 * `node bench/dist/queue/child.js ROOT WORKLOAD [--short]`: the cost of one cycle of the engine on the memory store,
 * without HTTP. ROOT is a checkout with a build, so the same program can measure an older one. Prints nanoseconds as
 * JSON.
 */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { FairQueue, FairQueueInit, MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { costOfBatch, type Loop } from "../timing.ts";

interface QueueModule {
  readonly FairQueue: new (init: FairQueueInit) => FairQueue;
  /** In older versions the store created the tokens, not the engine. */
  readonly MemoryStore: new (init: {
    clock: typeof realClock;
    newToken: () => string;
  }) => MemoryStore;
}

const [root = "", workload = "", ...flags] = process.argv.slice(2);
const module = (await import(pathToFileURL(resolve(root, "packages/queue/dist/index.js")).href)) as QueueModule;
const CLIENTS = 64;
let names = 0;

/** As long as those of the service: 128 random bits. */
const newName = (): string => `${(names++).toString(36)}-0123456789abcdef0123456789`.slice(0, 22);

const queue = new module.FairQueue({
  store: new module.MemoryStore({ clock: realClock, newToken: newName }),
  clock: realClock,
  newSessionId: newName,
  newSecret: newName,
  instance: "bench",
  config: { maxSlotPerHost: workload === "contended" ? 16 : CLIENTS, maxSlotPerIp: -1, maxWaitersPerHost: 0 },
  soon: setImmediate,
});
// Older versions do not have this method.
await (queue as { start?: () => Promise<void> }).start?.();

/** Over HTTP there is one turn of the event loop between a release and the next acquire. */
const turn = (): Promise<void> => new Promise((done) => void setImmediate(done));

async function cycle(host: string, bucket: string): Promise<void> {
  const answer = await queue.begin({ host, hostname: host, bucket, waitMs: 60_000 });
  if (answer.result !== "granted") throw new Error(`Expected a slot, got ${answer.result}`);
  queue.release({ slotToken: answer.slotToken });
  await turn();
}

/** `hostOf` names the host of the n-th cycle. */
function clients(hostOf: (n: number) => string): Loop {
  return async (count) => {
    let left = count;
    const loop = async (client: number) => {
      while (left-- > 0) await cycle(hostOf(left), `b${client % 32}`);
    };
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => loop(client)));
  };
}

let batches = 0;

const LOOPS: { readonly [workload: string]: Loop } = {
  /** One client, one host. */
  async idle(count) {
    for (let n = 0; n < count; n++) await cycle("one.example", "b");
  },
  /** As S1: 64 clients, 32 buckets, 16 slots. */
  contended: clients(() => "one.example"),
  /** As the one host of S5: a slot for every client. */
  free: clients(() => "one.example"),
  /** As the many hosts of S5: each is used once. */
  "new-host"(count) {
    const batch = batches++;
    return clients((n) => `h${n}.batch${batch}.example`)(count);
  },
};

const loop = LOOPS[workload];
if (loop === undefined) throw new RangeError(`Expected one of ${Object.keys(LOOPS).join(", ")}, got ${workload}`);
await loop(flags.includes("--short") ? 1_000 : 10_000);
console.log(JSON.stringify({ ns: await costOfBatch(loop, 2_000, flags.includes("--short")) }));
queue.close();
