import { describeHostStore } from "@slotkeeper/testkit/store-conformance";
import { VirtualPostgrest } from "./virtual-postgrest.ts";

describeHostStore("PostgrestStore", {
  open: () => VirtualPostgrest.open(),
  skip: { push: "PostgREST sends nothing by itself: the store polls, and only while sessions wait" },
});
