import type { SchedulerOptions } from "../../options.ts";

/** What the weighted scheduler is configured with, and what it keeps in the records. Other folders only show it. */

export interface WeightedSettings {
  readonly scheduler: SchedulerOptions;
  readonly pollIntervalMs: number;
}

/** Of a line, in its account. */
export interface WeightedLine {
  readonly virtualTime: number;
  /** How often the line was tried although no slot was free, and when that was last counted. */
  readonly waitCount: number;
  readonly waitCountedAt?: number | undefined;
}

/** Of a host, in its head. */
export interface WeightedHead {
  readonly isHot: boolean;
  /** The virtual time of the last turn. */
  readonly turnAt: number;
  /** When a line last got a slot or was tried in vain. */
  readonly triedAt?: number | undefined;
}

export const NEW_LINE: WeightedLine = { virtualTime: 0, waitCount: 0 };
export const NEW_HEAD: WeightedHead = { isHot: false, turnAt: 0 };
