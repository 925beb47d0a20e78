export { describeHostStore } from "./describe-host-store.ts";
export { accountOf, HostUnderTest, headOf, leaseOf, offerOf, sessionOf, waiterOf } from "./host-under-test.ts";
export type { ConformanceOptions, StoreUnderTest } from "./store-under-test.ts";
