import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openJournaledMemoryStore } from "@slotkeeper/server/journal";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { describeSlotStore } from "@slotkeeper/testkit/store-conformance";

/** `compactAfterBytes`: 1 writes the file anew whenever it has grown fourfold, hundreds of times in a run. */
function journaled(compactAfterBytes: number) {
  return {
    async open() {
      const folder = await mkdtemp(join(tmpdir(), "slotkeeper-journal-"));
      const clock = new VirtualClock();
      let made = 0;
      const { store, close } = await openJournaledMemoryStore({
        path: join(folder, "journal"),
        clock,
        newToken: () => `token-${made++}`,
        newTokenKey: () => "key",
        compactAfterBytes,
      });
      return {
        store,
        pass: (ms: number) => clock.run(ms),
        close: async () => {
          await close();
          await rm(folder, { recursive: true });
        },
      };
    },
  };
}

describeSlotStore("A memory store with a journal", journaled(1e9));
describeSlotStore("A memory store whose journal is compacted all the time", journaled(1));
