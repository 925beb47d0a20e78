/** `@slotkeeper/testkit/explore`: drives anything that hands out slots through many interleavings. */
export { type Action, type Census, type Scenario, slotStorm } from "./slot-storm.ts";
export { poolSource, semaphoreSource, type SlotSource } from "./slot-source.ts";
