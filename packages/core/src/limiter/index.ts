/** `slotkeeper/limiter`: slots, rates, budgets, priorities and adaptive limits in one gate, and streams through it. */
export type { MapOptions } from "../map-items.ts";
export type { LimiterAcquireOptions, LimiterRunOptions, LimiterTryOptions } from "./ask.ts";
export { type BudgetStats, Limiter, type LimiterStats } from "./limiter.ts";
export type { LimiterSlot, ReleaseOptions } from "./limiter-slot.ts";
export type { BudgetOptions, LimiterOptions, LimiterUpdate, PerKeyOptions } from "./options.ts";
export type { IsOverload, LimiterWork } from "./overload.ts";
export type { Source } from "./source.ts";
export { type StreamContext, type StreamGate, type StreamOptions, stream } from "./stream.ts";
