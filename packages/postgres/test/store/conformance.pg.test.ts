import { setTimeout as pause } from "node:timers/promises";
import { PostgresStore } from "@slotkeeper/postgres";
import { TestDatabase } from "@slotkeeper/testkit/postgres";
import { describeSlotStore } from "@slotkeeper/testkit/store-conformance";

describeSlotStore("PostgresStore", {
  skip: { push: "nothing is pushed yet: of its own release an instance is told by the answer, of others' by the poll" },
  open: async () => {
    const database = await TestDatabase.open();
    const store = await PostgresStore.open({ dsn: database.dsn, poolSize: 16 });
    return {
      store,
      pass: (ms) => pause(ms),
      close: async () => {
        await store.close();
        await database.close();
      },
    };
  },
});
