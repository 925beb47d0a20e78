import type { Random } from "../random/random.ts";
import { DATABASE_FAULTS } from "./database-faults.ts";
import { INSTANCE_FAULTS } from "./instance-faults.ts";
import type { World } from "./world.ts";

export interface Fault {
  readonly title: string;
  /** Does it and undoes it. */
  run(world: World, stalled: string | undefined): Promise<void>;
  /** From when the time to recovery counts: a fault that keeps all instances from the database can only be recovered from after its end. */
  readonly countsFrom: "start" | "end";
  /** The bound on recovery, if it is not the run's. */
  readonly recoversWithinMs?: number;
  /** The host that it may stall; no other. */
  stalls?(random: Random): string;
  /** It must not cost any client a request. */
  readonly failsNoRequest?: boolean;
  /** It needs a database whose data is on a file system of limited size. */
  readonly needsLimitedData?: boolean;
}

export const FAULTS = { ...INSTANCE_FAULTS, ...DATABASE_FAULTS };

export type FaultName = keyof typeof FAULTS;

export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[];
