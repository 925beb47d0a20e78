export { Random } from "./random.ts";
export { drained, VirtualClock } from "./virtual-clock.ts";
