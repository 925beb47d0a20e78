import type { Commit, CommitReply, HostStore } from "@slotkeeper/queue";
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { expect, test } from "vitest";

/** CYCLE7 of `cycle.ts`. */
test.each(["slots", "clock"] as const)(
  "a store that keeps refusing a commit (%s) is asked less and less often, and the waiter gets its slot when the store accepts",
  async (reason) => {
    const clock = new VirtualClock();
    const memory = new MemoryStore({ clock });
    const triedAt: number[] = [];
    let isRefusing = true;
    const commit = async (asked: Commit): Promise<CommitReply> => {
      triedAt.push(clock.now());
      // Without pauses this would continue forever.
      if (!isRefusing || triedAt.length > 50) return memory.commit(asked);
      return { isOk: false, reason, ...(await memory.read(asked.host, undefined)) };
    };
    const store = new Proxy<HostStore>(memory, {
      get: (_, key) => {
        const value: unknown = Reflect.get(memory, key);
        if (key === "commit") return commit;
        return typeof value === "function" ? value.bind(memory) : value;
      },
    });
    const secrets = Array.from({ length: 100 }, (_, n) => `secret-${n}`);
    const queue = new FairQueue({
      store,
      clock,
      newSessionId: () => "session",
      newSecret: () => secrets.pop() ?? "",
      instance: "one",
    });
    const startedAt = clock.now();
    const answer = queue.begin({ host: "h", bucket: "b", waitMs: 60_000 });
    await clock.run(3_000);
    const pauses = triedAt.map((at, n) => at - (triedAt[n - 1] ?? startedAt));
    expect(pauses).toEqual([0, 0, 20, 40, 80, 160, 320, 500, 500, 500, 500]);
    isRefusing = false;
    await clock.run(500);
    expect(await answer).toMatchObject({ result: "granted" });
    queue.close();
  },
);
