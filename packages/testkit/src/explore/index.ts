/** `@slotkeeper/testkit/explore`: drives anything that hands out slots through many interleavings. */

export { type AcquireRequest, poolSource, type SlotSource, semaphoreSource } from "./slot-source.ts";
export { type Action, type Census, type Scenario, slotStorm } from "./slot-storm.ts";
