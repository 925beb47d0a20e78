/**
 * Runs every (case, subject) pair in fresh processes, round by round.
 *
 * H1. Within a case the subjects take turns (A B C, B C A, …), so that a slow period of the machine affects all of
 * them. H2. Each pair gets a new process in each round, so that no subject is affected by the compiled code or heap of
 * another. H3. A pair that exceeds its budget, or fails, is not run again, and is reported as such.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { OURS } from "./goals.ts";
import type { Row, Standing } from "./results.ts";
import type { Subject } from "./subject.ts";
import { type Case, type Measurement, yardsticksOf } from "./workload.ts";

const CHILD = fileURLToPath(new URL("child.js", import.meta.url));

/** The exit code of Node if nothing is left to do while the program still awaits. */
const HANGS = 13;

export interface Pair {
  readonly chosen: Case;
  readonly subject: string;
}

export interface HarnessOptions {
  readonly rounds: number;
  readonly isShort: boolean;
  readonly budgetMs: number;
  readonly signal: AbortSignal;
  /** The results of an earlier run: their rounds count. */
  readonly before: ReadonlyMap<string, Standing>;
  readonly onProgress: (text: string) => void;
}

/** A row needs our figure and the limit, so these get more time if the machine is busy. */
const ESSENTIAL_BUDGETS = 5;
const isEssential = (pair: Pair): boolean =>
  pair.subject === OURS || yardsticksOf(pair.chosen).some((yardstick) => yardstick.id === pair.subject);

function measureOnce(pair: Pair, options: HarnessOptions): Promise<Standing> {
  const flags = ["--no-warnings", ...(pair.chosen.needsGc === true ? ["--expose-gc"] : [])];
  const mode = options.isShort ? ["--short"] : [];
  const budgetMs = isEssential(pair) ? options.budgetMs * ESSENTIAL_BUDGETS : options.budgetMs;
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...flags, CHILD, pair.chosen.id, pair.subject, ...mode], {
      stdio: ["ignore", "pipe", "pipe"],
      // The terminal sends Ctrl-C to the whole group; the harness decides how to handle it.
      detached: true,
    });
    let out = "";
    let errors = "";
    let isOverBudget = false;
    const kill = (): void => void child.kill("SIGKILL");
    const timer = setTimeout(() => {
      isOverBudget = true;
      kill();
    }, budgetMs);
    options.signal.addEventListener("abort", kill, { once: true });
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
    child.on("close", (code) => {
      clearTimeout(timer);
      options.signal.removeEventListener("abort", kill);
      if (isOverBudget) resolve({ state: "over-budget", budgetMs });
      else if (code === 0) resolve({ state: "measured", samples: [JSON.parse(out) as Measurement] });
      else
        resolve({
          state: "failed",
          message: code === HANGS ? "hangs: its waiters never settle" : firstErrorLine(errors),
        });
    });
  });
}

const firstErrorLine = (text: string): string =>
  text.split("\n").find((line) => /^\s*\w*Error|FATAL/.test(line)) ?? text.split("\n")[0] ?? "died";

const key = (pair: Pair): string => `${pair.chosen.id} ${pair.subject}`;

export const rotated = <T>(items: readonly T[], by: number): T[] => {
  const at = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(at), ...items.slice(0, at)];
};

function join(before: Standing | undefined, now: Standing): Standing {
  if (before?.state !== "measured" || now.state !== "measured") return now;
  return { state: "measured", samples: [...before.samples, ...now.samples] };
}

const timeText = (ms: number): string => {
  const seconds = Math.round(ms / 1000);
  return seconds >= 60 ? `${Math.floor(seconds / 60)} min ${seconds % 60} s` : `${seconds} s`;
};

/** The remaining pairs and the estimated time: as long as they took before, or the average of all pairs. */
class Agenda {
  readonly #durations = new Map<string, number>();

  record(pair: Pair, durationMs: number): void {
    this.#durations.set(key(pair), durationMs);
  }

  leftMs(pairs: readonly Pair[]): number {
    const known = [...this.#durations.values()];
    const average = known.reduce((sum, one) => sum + one, 0) / Math.max(known.length, 1);
    return pairs.reduce((sum, pair) => sum + (this.#durations.get(key(pair)) ?? average), 0);
  }
}

/** The results of each pair, by `case subject`. If the signal aborts, it ends early with what is there. */
export async function measureAll(groups: readonly (readonly Pair[])[], options: HarnessOptions) {
  const standings = new Map(options.before);
  const roundsBefore = (pair: Pair): number => {
    const standing = standings.get(key(pair));
    return standing?.state === "measured" ? standing.samples.length : 0;
  };
  const agenda = new Agenda();
  const isOut = (pair: Pair): boolean => (standings.get(key(pair))?.state ?? "measured") !== "measured";
  let left = Array.from({ length: options.rounds }, (_, round) =>
    groups.flatMap((group) => rotated(group, round)).filter((pair) => roundsBefore(pair) <= round && !isOut(pair)),
  ).flat();
  const all = left.length;
  for (let pair = left.shift(); pair !== undefined; pair = left.shift()) {
    options.onProgress(`${all - left.length}/${all}, ${timeText(agenda.leftMs([pair, ...left]))} left: ${key(pair)}`);
    const startedAt = performance.now();
    const standing = await measureOnce(pair, options);
    if (options.signal.aborted) return standings;
    agenda.record(pair, performance.now() - startedAt);
    standings.set(key(pair), join(standings.get(key(pair)), standing));
    if (isOut(pair)) left = left.filter((other) => !isOut(other));
  }
  return standings;
}

/** The rows of a case, in the order the table shows them: limit, ours, peers. */
export function rowsOf(
  chosen: Case,
  subjects: readonly Subject[],
  standings: ReadonlyMap<string, Standing>,
): readonly Row[] {
  const yardsticks = yardsticksOf(chosen);
  return [...yardsticks, ...subjects].flatMap((subject) => {
    const isYardstick = yardsticks.includes(subject);
    const reason = isYardstick ? undefined : chosen.absence(subject);
    const measured = standings.get(key({ chosen, subject: subject.id }));
    const standing: Standing | undefined = reason === undefined ? measured : { state: "absent", reason };
    if (standing === undefined) return [];
    const note = standing.state === "measured" ? subject.notes?.[chosen.noteKey] : undefined;
    const row = { subject: subject.id, isFull: subject.safety.length > 0, isYardstick, standing };
    return [note === undefined ? row : { ...row, note }];
  });
}
