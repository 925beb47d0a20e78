import type { Random } from "../random/random.ts";
import { DATABASE_FAULTS } from "./database-faults.ts";
import { INSTANCE_FAULTS } from "./instance-faults.ts";
import type { World } from "./world.ts";

export interface Fault {
  readonly title: string;
  /** Causes the fault and reverts it. */
  run(world: World, stalled: string | undefined): Promise<void>;
  /**
   * When the recovery starts to count. If no instance can reach the database, recovery is possible only after the
   * fault.
   */
  readonly countsFrom: "start" | "end";
  /** The bound on the recovery, if it differs from that of the run. */
  readonly recoversWithinMs?: number;
  /** The only host that the fault may stall. */
  stalls?(random: Random): string;
  /** Whether no request of a client may fail. */
  readonly failsNoRequest?: boolean;
  /** Whether the data of the database must be on a file system of limited size. */
  readonly needsLimitedData?: boolean;
}

export const FAULTS = { ...INSTANCE_FAULTS, ...DATABASE_FAULTS };

export type FaultName = keyof typeof FAULTS;

export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[];
