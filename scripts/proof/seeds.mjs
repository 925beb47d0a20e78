// Runs a program for every seed of a range, on several threads.
// - A seed that does not end is stopped and counts as failed; the others go on in a new thread. So does a seed that ends its thread.
// - Finished seeds are kept while the run goes on, so an abrupt end loses the last ones only.
import { parentPort, Worker } from "node:worker_threads";

/** A seed takes milliseconds. After this time it hangs. */
export const LIMIT_MS = 120_000;
/** The number of finished seeds that are kept together. */
const KEPT_TOGETHER = 1000;

/** The seeds from `from` to `to` that no earlier run has finished: `kept` is what `keep` got in those runs. */
export function seedsLeft(from, to, kept) {
  const left = [];
  let seed = from;
  for (const range of kept.filter((one) => one.to >= from).sort((a, b) => a.from - b.from)) {
    for (; seed < range.from && seed <= to; seed++) left.push(seed);
    seed = Math.max(seed, range.to + 1);
  }
  for (; seed <= to; seed++) left.push(seed);
  return left;
}

/**
 * - `program`: the module of the threads. It calls `answerSeeds`.
 * - `keep({ from, to, failed, seconds })`: the seeds from `from` to `to` are finished, and those in `failed` failed.
 * - `onFailure(seed, what, story)`: what happened, in one line and in more.
 * - `mostFailures`: the run ends early after this number.
 * Returns the seeds that failed and the number of those that finished.
 */
export async function runSeeds({ program, seeds, workers, keep, onFailure, mostFailures = Infinity }) {
  const left = seeds.values();
  const failed = [];
  const ledger = new Ledger(keep);
  const work = async () => {
    let worker;
    for (const seed of left) {
      worker ??= new Worker(program);
      const answer = await answerOf(worker, seed);
      if (answer.isLost) worker = undefined;
      if (answer.what !== undefined) {
        failed.push(seed);
        onFailure(seed, answer.what, answer.story ?? []);
      }
      ledger.add(seed, answer.what !== undefined);
      if (failed.length >= mostFailures) break;
    }
    await worker?.terminate();
  };
  await Promise.all(Array.from({ length: Math.min(workers, seeds.length) }, work));
  ledger.close();
  return { failed, finished: ledger.finished };
}

/** In a thread: `answer` returns nothing, or `{ what, story }` if the seed failed. */
export function answerSeeds(answer) {
  const reply = async (seed) => parentPort.postMessage((await answer(seed)) ?? {}, []);
  parentPort.on("message", (seed) => void reply(seed));
}

async function answerOf(worker, seed) {
  let limit;
  const answer = await new Promise((resolve) => {
    const lost = (what) => resolve({ what, isLost: true });
    limit = setTimeout(() => lost(`did not end within ${LIMIT_MS / 1000} s`), LIMIT_MS);
    worker.once("message", resolve);
    worker.once("error", (error) => lost(String(error)));
    worker.once("exit", (code) => lost(`its thread ended with code ${code}`));
    worker.postMessage(seed, []);
  });
  clearTimeout(limit);
  for (const event of ["message", "error", "exit"]) worker.removeAllListeners(event);
  if (answer.isLost) await worker.terminate();
  return answer;
}

/** Keeps finished seeds in ranges without gaps. */
class Ledger {
  finished = 0;
  #keep;
  #open = new Map();
  #keptAt = performance.now();

  constructor(keep) {
    this.#keep = keep;
  }

  add(seed, isFailed) {
    this.finished++;
    this.#open.set(seed, isFailed);
    if (this.#open.size >= KEPT_TOGETHER) this.close();
  }

  close() {
    const now = performance.now();
    let seconds = (now - this.#keptAt) / 1000;
    for (const range of rangesOf(this.#open)) {
      this.#keep({ ...range, seconds });
      seconds = 0;
    }
    this.#keptAt = now;
    this.#open.clear();
  }
}

function rangesOf(finished) {
  const ranges = [];
  for (const seed of [...finished.keys()].sort((a, b) => a - b)) {
    if (ranges.at(-1)?.to !== seed - 1) ranges.push({ from: seed, to: seed, failed: [] });
    ranges.at(-1).to = seed;
    if (finished.get(seed)) ranges.at(-1).failed.push(seed);
  }
  return ranges;
}
