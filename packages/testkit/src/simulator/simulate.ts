import { judgeHistory, type Verdict } from "../history/judge-history.ts";
import { type Plant, World } from "./world.ts";

export interface SimulationResult {
  readonly seed: number;
  /** Empty if there was no violation. The first one is usually the cause. */
  readonly violations: readonly string[];
  /** What the independent checker says about the calls and answers of the clients. */
  readonly verdict: Verdict;
  /** What happened before the first violation. */
  readonly history: readonly string[];
}

/** Runs the history of one seed to its end. */
export async function simulate(seed: number, plant?: Plant): Promise<SimulationResult> {
  const undo = plant?.engine?.();
  const world = new World(seed, plant);
  try {
    await world.run();
  } finally {
    undo?.();
  }
  const { violations } = world.invariants;
  const verdict = judgeHistory(world.recorder.lines);
  return { seed, violations, verdict, history: violations.length === 0 ? [] : world.history.lines };
}
