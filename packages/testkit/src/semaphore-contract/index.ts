export { describeSemaphore } from "./describe-semaphore.ts";
export type { ContractOptions, SemaphoreLike, SemaphoreSubject, Skips, SlotLike } from "./subject.ts";
