/**
 * `node child.mjs PATH GENERATION [COMPACT_AFTER]`: clients in a closed loop on a journaled store, until the process is
 * killed. A client prints each result before it uses it.
 */
import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { openJournaledMemoryStore } from "@slotkeeper/server/internals";
import { realClock } from "slotkeeper";
import { Calls, LIMITS, policyOf } from "./store-calls.ts";

const [path = "", generation = "", compactAfter = "20000"] = process.argv.slice(2);
const say = (line: unknown): void => void writeSync(1, `${JSON.stringify(line)}\n`);
const { store } = await openJournaledMemoryStore({
  path,
  clock: realClock,
  newTokenKey: randomUUID,
  retryMs: 20,
  compactAfterBytes: Number(compactAfter),
  onEvent: (event) => say({ event: event.type }),
});
say({ ready: true });

const calls = new Calls(store, policyOf(LIMITS));
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Repeats until a slot is granted; the disk may fail meanwhile. */
async function granted(session: string) {
  for (;;) {
    const slot = await calls.grant(session).catch(() => undefined);
    if (slot !== undefined) return slot;
    await turn();
  }
}

/** Repeats until the store has answered, as the service does: a slot that is not released stays occupied for its lease. */
async function released(slotToken: string) {
  for (;;) {
    try {
      return await calls.release(slotToken, 200);
    } catch {
      await turn();
    }
  }
}

async function client(bucket: string): Promise<void> {
  for (let n = 0; ; n++) {
    const session = `${bucket}-${generation}-${n}`;
    const { slotToken, fence } = await granted(session);
    say({ granted: session, fence });
    if (n % 3 === 0) await calls.renew(slotToken).catch(() => undefined);
    say({ asked: session });
    if ((await released(slotToken)) !== undefined) say({ released: session });
  }
}

await Promise.all(["a1", "a1", "b1", "b1", "c1", "c1", "d1", "d1", "e1", "e1"].map((bucket) => client(bucket)));
