// The client over the objects, in real workerd.
import { SlotClient } from "@slotkeeper/client";
import { describeSemaphore } from "@slotkeeper/testkit/semaphore-contract";
import { expect, test } from "vitest";
import { expected } from "../../client/test/smoke.ts";
import { KEY, keepWorker, SERVING, slotsClass, startWorker, stateOf } from "./worker.ts";

test("the client works over a binding", async () => {
  const { ask } = await startWorker({
    script: `
      ${slotsClass({})}
      import { smoke } from "../../client/test/smoke.ts";
      export default {
        async fetch(_, env) {
          globalThis.fetch = slotFetch(env.SLOTS);
          return Response.json(await smoke("http://slots", "object"));
        },
      };
    `,
  });
  // JSON has no undefined.
  expect(await (await ask("/")).json()).toEqual({ ...expected, busy: [null, "ACQUIRE_TIMEOUT"] });
});

describeSemaphore("A semaphore of an object", {
  open: async () => {
    const served = await keepWorker({ script: `${slotsClass({})} ${SERVING}` });
    const keeper = new SlotClient({ url: served.url.origin, token: KEY });
    return {
      make: (slots, name) => keeper.semaphore(name, slots),
      queued: async (name, waiters) => {
        const waiting = async () => (await stateOf(served, `sem:${name}`))?.pending ?? 0;
        await expect.poll(waiting, { timeout: 5_000, interval: 5 }).toBe(waiters);
      },
      close: () => served.stop(),
    };
  },
  skip: {
    resize: "the first live user of a name fixes its capacity",
    close: "no process may close a semaphore for the others",
    counters: "only the object knows them, and it reports them to operators",
  },
});
