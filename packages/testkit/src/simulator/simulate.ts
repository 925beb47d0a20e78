import { type Plant, World } from "./world.ts";

export interface SimulationResult {
  readonly seed: number;
  /** Empty if there was no violation. The first one is usually the cause. */
  readonly violations: readonly string[];
  /** What happened before the first violation. */
  readonly history: readonly string[];
}

/** Runs the history of one seed to its end. */
export async function simulate(seed: number, plant?: Plant): Promise<SimulationResult> {
  const world = new World(seed, plant);
  await world.run();
  const { violations } = world.invariants;
  return { seed, violations, history: violations.length === 0 ? [] : world.history.lines };
}
