import { describeSlotStore } from "@slotkeeper/testkit/store-conformance";
import { VirtualDatabase } from "./virtual-database.ts";

describeSlotStore("PostgresStore", {
  skip: { push: "nothing is pushed yet: of its own release an instance is told by the answer, of others' by the poll" },
  // In virtual time: leases of the suite are short, and a slow machine would see them end between two calls.
  open: async () => {
    const database = await VirtualDatabase.open(1_700_000_000_000, 16);
    return { store: database.store, pass: (ms) => database.pass(ms), close: () => database.close() };
  },
});
