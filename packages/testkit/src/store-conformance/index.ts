export { describeSlotStore } from "./describe-slot-store.ts";
export type { ConformanceOptions, StoreUnderTest } from "./store-under-test.ts";
