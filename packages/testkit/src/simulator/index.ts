export { imageDifference, indexDifference } from "./book-equality.ts";
export { type SimulationResult, simulate } from "./simulate.ts";
export { SkewedClock } from "./skewed-clock.ts";
export { drained, VirtualClock } from "./virtual-clock.ts";
export type { Plant } from "./world.ts";
