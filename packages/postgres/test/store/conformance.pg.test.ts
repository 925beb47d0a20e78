import { describeHostStore } from "@slotkeeper/testkit/store-conformance";
import { VirtualDatabase } from "./virtual-database.ts";

describeHostStore("PostgresStore", { open: () => VirtualDatabase.open() });
