import { type Plant, World } from "./world.ts";

export interface SimulationResult {
  readonly seed: number;
  /** Empty: a clean history. The first is the cause more often than the rest. */
  readonly violations: readonly string[];
}

/** Runs the history of one seed to its end, or to its first violation. */
export async function simulate(seed: number, plant?: Plant): Promise<SimulationResult> {
  const world = new World(seed, plant);
  await world.run();
  return { seed, violations: world.invariants.violations };
}
