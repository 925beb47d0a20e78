import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BookRecord, HostStore } from "@slotkeeper/queue";
import { openJournaledMemoryStore } from "@slotkeeper/server/internals";
import { SkewedClock } from "@slotkeeper/testkit/simulator";
import { describeHostStore } from "@slotkeeper/testkit/store-conformance";
import { FakeClock } from "slotkeeper/testing";

/** `compactAfterBytes` 1: writes the file again whenever it has grown fourfold, hundreds of times in a run. */
function journaled(compactAfterBytes: number) {
  return {
    async open() {
      const folder = await mkdtemp(join(tmpdir(), "slotkeeper-journal-"));
      const world = new FakeClock(1e12);
      const clock = new SkewedClock(world);
      const path = join(folder, "journal");
      const start = () => openJournaledMemoryStore({ path, clock, newTokenKey: () => "key", compactAfterBytes });
      let life = await start();
      return {
        get store(): HostStore {
          return life.store;
        },
        get other(): HostStore {
          return life.store;
        },
        pass: async (ms: number) => (ms < 0 ? clock.jump(ms) : world.advance(ms)),
        restart: async () => {
          await life.close();
          life = await start();
          return life.store;
        },
        // RESTORE3 of `entry.ts`: no client has a poll open at the new process.
        afterRestart: (record: BookRecord) => (record.kind === "waiter" ? { ...record, awayAt: clock.now() } : record),
        close: async () => {
          await life.close();
          await rm(folder, { recursive: true });
        },
      };
    },
  };
}

describeHostStore("A memory store with a journal", journaled(1e9));
describeHostStore("A memory store whose journal is compacted all the time", journaled(1));
