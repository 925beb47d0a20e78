import { Random } from "../random/random.ts";
import { FuzzFailure, type FuzzRun, type FuzzTarget } from "./fuzz-target.ts";
import { configTarget } from "./targets/config-target.ts";
import { effectsTarget } from "./targets/effects-target.ts";
import { httpTarget } from "./targets/http-target.ts";
import { journalTarget } from "./targets/journal-target.ts";
import { limiterTarget } from "./targets/limiter-target.ts";
import { sqlTarget } from "./targets/sql-target.ts";

export const FUZZ_TARGETS: readonly FuzzTarget[] = [
  httpTarget,
  configTarget,
  limiterTarget,
  effectsTarget,
  journalTarget,
  sqlTarget,
];

/** How much more memory a target may use in its last quarter than in its second. In the first it warms up. */
const LEAK_BYTES = 48 * 1024 * 1024;
/** How often memory is looked at in a quarter. Of these the lowest counts: between two collections it rises and falls. */
const LOOKS = 4;
/** A batch takes milliseconds. After this time it hangs. */
const HANG_MS = 120_000;

export interface FuzzOptions {
  readonly target: FuzzTarget;
  /** The first batch has this seed, the next one the next. */
  readonly seed: number;
  /** Ends after this number of inputs, or at the time `until` of `performance.now()`. */
  readonly inputs: number;
  readonly until?: number;
  /** Gets the report so far, after every batch. */
  readonly onProgress?: (report: FuzzReport) => void;
}

/** The result for one target. Without `failure`, all inputs were handled well. */
export interface FuzzReport {
  readonly target: string;
  readonly inputs: number;
  readonly seconds: number;
  /** The seed of the batch that follows. */
  readonly nextSeed: number;
  readonly failure?: { readonly seed: number; readonly message: string; readonly input: string };
}

/** Gives a target random inputs until its budget is used, or until one is handled badly. */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const { target, inputs, until = Number.POSITIVE_INFINITY, onProgress } = options;
  const startedAt = performance.now();
  const run = await target.open();
  let [tried, seed] = [0, options.seed];
  const looks: number[] = [];
  const report = (): FuzzReport => ({
    target: target.name,
    inputs: tried,
    seconds: (performance.now() - startedAt) / 1000,
    nextSeed: seed,
  });
  try {
    while (tried < inputs && performance.now() < until) {
      await inTime(run, new Random(seed));
      seed++;
      tried += target.batch;
      onProgress?.(report());
      if (tried >= ((looks.length + 1) * inputs) / (4 * LOOKS)) looks.push(await run.memory());
    }
    const least = (from: number, to?: number) => Math.min(...looks.slice(from, to));
    const grown = looks.length < 4 * LOOKS ? 0 : least(-LOOKS) - least(LOOKS, 2 * LOOKS);
    if (grown > LEAK_BYTES)
      throw new FuzzFailure(`Memory grew by ${Math.round(grown / 1e6)} MB`, "all inputs together");
    return report();
  } catch (error) {
    const input = error instanceof FuzzFailure ? error.input : "";
    return { ...report(), failure: { seed, message: String(error), input } };
  } finally {
    await run.close();
  }
}

function inTime(run: FuzzRun, random: Random): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new FuzzFailure(`The batch took more than ${HANG_MS} ms`, "")), HANG_MS);
  });
  return Promise.race([run.tryBatch(random), late]).finally(() => clearTimeout(timer));
}
