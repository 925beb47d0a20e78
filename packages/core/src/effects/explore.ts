/**
 * Runs a program under many interleavings and looks for one that fails.
 *
 * It tries all `runs` seeds, keeps the failing run with the shortest log, shrinks it (`shrink.ts`), and prints the
 * seed, the error and the shortest log. `simulate(program, { seed })` repeats the failing run, and `simulate(program, {
 * replay })` the shortest one. If no run fails, that is not a proof.
 */

import { callback, integer, integerFrom, readOptions } from "../options.ts";
import type { Program } from "./effect.ts";
import type { Ending, SimulationResult } from "./outcome.ts";
import type { Resolver } from "./outside-wait.ts";
import { describe } from "./program.ts";
import { type ChoiceSource, ReplayedChoices, SeededChoices } from "./random.ts";
import type { LogEntry } from "./scheduler.ts";
import { isBetter, shrink, withoutTail } from "./shrink.ts";
import { simulateToEnd } from "./simulate.ts";
import { type AsyncProgram, simulateAsyncToEnd } from "./simulate-async.ts";

/** Options of `explore` and its variants. */
export interface ExploreOptions<T> {
  /** The number of seeds to try. @defaultValue 1,000 */
  readonly runs?: number;
  /**
   * Checks the result of a run that did not fail. The run fails if this throws or returns `false`.
   * @defaultValue no check
   */
  readonly check?: (result: SimulationResult<T>) => unknown;
  /** The first seed; the next runs use the following numbers. @defaultValue 1 */
  readonly seed?: number;
  /** A run with more steps fails with `StepLimitError`. @defaultValue 100,000 */
  readonly maxSteps?: number;
  /** Replaces the promises of `fromPromise`. @defaultValue none: `fromPromise` fails */
  readonly resolver?: Resolver;
  /** Receives the report. @defaultValue `console.log`; the `OrThrow` variants print nothing */
  readonly print?: (report: string) => void;
}

/** The failing run that `explore` reports. */
export interface Failure {
  /** Repeats the run that failed: `simulate(program, { seed })`. */
  readonly seed: number;
  /** The error of the run. */
  readonly error: unknown;
  /** The messages of the shortest failing run found. */
  readonly log: readonly string[];
  /** Repeats that shortest run: `simulate(program, { replay })`. */
  readonly replay: readonly number[];
  /** The report, as printed. */
  readonly report: string;
}

/** What `explore` returns. */
export interface Exploration {
  /** Whether no run failed. */
  readonly ok: boolean;
  /** The number of runs. */
  readonly runs: number;
  /** The number of runs that failed. */
  readonly failures: number;
  /** The failing run with the shortest log, shrunk; `undefined` if no run failed. */
  readonly failure: Failure | undefined;
  /** `failure.seed`, or `undefined`. */
  readonly seed: number | undefined;
  /** `failure.log`, or `undefined`. */
  readonly log: readonly string[] | undefined;
  /** `failure.error`, or `undefined`. */
  readonly error: unknown;
}

const rules = {
  runs: integerFrom(1),
  check: callback,
  seed: integer,
  maxSteps: integerFrom(1),
  resolver: callback,
  print: callback,
};
const { resolver: _, ...asyncRules } = rules;

const SHRINKING_RUNS = 2_000;

/**
 * Runs the program of a function under `runs` seeds. The function is called again for each seed, so keep the state
 * inside it.
 *
 * @example
 * ```ts
 * import { delay, explore, gather, simulate, spawn } from "slotkeeper/effects";
 *
 * function* program() {
 *   let balance = 100;
 *   function* withdraw() {
 *     if (balance < 100) return;
 *     yield* delay(0);
 *     balance -= 100;
 *   }
 *   yield* gather(yield* spawn(withdraw), yield* spawn(withdraw));
 *   return balance;
 * }
 * const { ok, seed } = explore(program, { runs: 100, check: ({ value }) => value >= 0 });
 * if (!ok && seed !== undefined) console.log(simulate(program, { seed }).log);
 * ```
 */
export function explore<T>(program: () => Program<T>, options: ExploreOptions<T> = {}): Exploration {
  const given = readOptions(options, rules);
  const { maxSteps = MAX_STEPS, resolver } = given;
  const search = searchOf(program, given);
  const runOptions = { maxSteps, ...(resolver && { resolver }) };
  let step = search.next();
  while (step.done !== true) step = search.next(simulateToEnd(program, runOptions, step.value));
  return step.value;
}

/**
 * Like `explore`, but throws if a run fails. Use it in tests, where an ignored result would pass.
 *
 * @throws {Error} if a run failed. Its message is the report, its `cause` the failing run's error.
 * @example
 * ```ts
 * import { delay, exploreOrThrow, gather } from "slotkeeper/effects";
 *
 * exploreOrThrow(
 *   function* () {
 *     const values = yield* gather(delay(1), delay(2));
 *     return values.length;
 *   },
 *   { runs: 1_000, check: ({ value }) => value === 2 },
 * );
 * ```
 */
export function exploreOrThrow<T>(program: () => Program<T>, options: ExploreOptions<T> = {}): Exploration {
  return orThrow(explore(program, { print: () => {}, ...options }));
}

/**
 * Like `exploreOrThrow`, for programs that wait for real promises (`simulateAsync`).
 *
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 * import { exploreAsyncOrThrow, fromPromise } from "slotkeeper/effects";
 *
 * await exploreAsyncOrThrow(function* (clock) {
 *   const db = new Semaphore(1, { clock });
 *   const slot = yield* fromPromise(db.acquire());
 *   slot.release();
 * });
 * ```
 */
export async function exploreAsyncOrThrow<T>(
  program: Extract<AsyncProgram<T>, (...args: never[]) => unknown>,
  options: Omit<ExploreOptions<T>, "resolver"> = {},
): Promise<Exploration> {
  return orThrow(await exploreAsync(program, { print: () => {}, ...options }));
}

function orThrow(exploration: Exploration): Exploration {
  const { failure } = exploration;
  if (failure !== undefined) throw new Error(failure.report, { cause: failure.error });
  return exploration;
}

/**
 * Like `explore`, for programs that wait for real promises (`simulateAsync`).
 *
 * @example
 * ```ts
 * import { Semaphore } from "slotkeeper";
 * import { exploreAsync, fromPromise } from "slotkeeper/effects";
 *
 * const { ok } = await exploreAsync(
 *   function* (clock) {
 *     const db = new Semaphore(1, { clock });
 *     const slot = yield* fromPromise(db.acquire());
 *     return slot.release();
 *   },
 *   { runs: 100, check: ({ value }) => value },
 * );
 * ```
 */
export async function exploreAsync<T>(
  program: Extract<AsyncProgram<T>, (...args: never[]) => unknown>,
  options: Omit<ExploreOptions<T>, "resolver"> = {},
): Promise<Exploration> {
  const given = readOptions(options, asyncRules);
  const { maxSteps = MAX_STEPS } = given;
  const search = searchOf(program, given);
  const runOptions = { maxSteps };
  let step = search.next();
  while (step.done !== true) step = search.next(await simulateAsyncToEnd(program, runOptions, step.value));
  return step.value;
}

const MAX_STEPS = 100_000;

interface FailingRun {
  readonly seed: number;
  readonly error: unknown;
  readonly entries: readonly LogEntry[];
  readonly choices: readonly number[];
  readonly logLength: number;
}

/** The search itself. It yields the choices of the next run to its driver, which is synchronous or asynchronous. */
function* searchOf<T>(program: unknown, options: ExploreOptions<T>): Generator<ChoiceSource, Exploration, Ending<T>> {
  if (typeof program !== "function") {
    throw new TypeError(`Expected \`program\` to be a function that returns a generator, got ${describe(program)}`);
  }
  const { runs = 1_000, seed: first = 1, check } = options;
  let best: FailingRun | undefined;
  let failures = 0;
  for (let seed = first; seed < first + runs; seed++) {
    const choices = new SeededChoices(seed);
    const found = failingRun(yield choices, seed, choices.made, check);
    if (found === undefined) continue;
    failures++;
    if (best === undefined || isBetter(found, best)) best = found;
  }
  if (best === undefined) {
    return { ok: true, runs, failures, failure: undefined, seed: undefined, log: undefined, error: undefined };
  }
  const failure = toFailure(yield* shortestOf(best, check), runs, failures);
  (options.print ?? console.log)(failure.report);
  return { ok: false, runs, failures, failure, seed: failure.seed, log: failure.log, error: failure.error };
}

function* shortestOf<T>(
  start: FailingRun,
  check: ExploreOptions<T>["check"],
): Generator<ChoiceSource, FailingRun, Ending<T>> {
  const shrinking = shrink(start, SHRINKING_RUNS);
  let step = shrinking.next();
  while (step.done !== true) {
    const choices = step.value;
    const found = failingRun(yield new ReplayedChoices(choices), start.seed, choices, check);
    step = shrinking.next(found !== undefined && nameOf(found.error) === nameOf(start.error) ? found : undefined);
  }
  return step.value;
}

function failingRun<T>(
  ending: Ending<T>,
  seed: number,
  choices: readonly number[],
  check: ExploreOptions<T>["check"],
): FailingRun | undefined {
  const failed = ending.failed ? ending.result : complaintOf(check, ending.result);
  if (failed === undefined) return undefined;
  const { entries } = ending;
  return { seed, error: failed.error, entries, choices: withoutTail(choices), logLength: entries.length };
}

function complaintOf<T>(
  check: ExploreOptions<T>["check"],
  result: SimulationResult<T>,
): { readonly error: unknown } | undefined {
  try {
    return check?.(result) === false ? { error: new Error("`check` returned false") } : undefined;
  } catch (error) {
    return { error };
  }
}

function toFailure(run: FailingRun, runs: number, failures: number): Failure {
  const replay = run.choices;
  const lines = run.entries.map(({ at, task, message }) => `  ${at} ms  ${task.name}: ${message}`);
  const report = [
    `explore: ${failures} of ${runs} runs failed. Seed ${run.seed}: ${String(run.error)}`,
    `The shortest failing log found, ${lines.length} lines:`,
    ...lines,
    `Repeat the failing run with { seed: ${run.seed} }, the shortest with { replay: ${JSON.stringify(replay)} }.`,
  ].join("\n");
  return { seed: run.seed, error: run.error, log: run.entries.map((entry) => entry.message), replay, report };
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}
