/** `slotkeeper/parts`: parts that other packages of this repository share. It may change with any release. */
export { Agenda, type Due } from "./agenda.ts";
export { LONGEST_DELAY_MS } from "./clock.ts";
export { IndexedHeap } from "./indexed-heap.ts";
export { charge, freeze, type Level, missingAt, newLevel, payableAt, type Refill, refund } from "./limiter/level.ts";
