// What the programs that try seeds share: they continue where the runs on this commit stopped, and record while they run.
import { record, recorded } from "./record.mjs";
import { runSeeds, seedsLeft } from "./seeds.mjs";

const SHOWN_EVERY_MS = 20_000;

/** An option that is a whole number greater than 0, or the end of the program with code 2. */
export function wholeNumber(name, text) {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number > 0) return number;
  console.error(`Expected --${name} to be a whole number greater than 0, got ${JSON.stringify(text)}. See --help.`);
  process.exit(2);
}

/** Tries the seeds from `from` to `to`, and ends the program. `failures`: the name of the number of failed seeds on the page. */
export async function proveSeeds({ kind, unit, failures, program, from, to, workers, mostFailures }) {
  const before = recorded(kind).filter((part) => part.failed !== undefined);
  const failedBefore = before.flatMap(({ failed }) => failed).filter((seed) => seed >= from && seed <= to);
  const seeds = failedBefore.length >= (mostFailures ?? Infinity) ? [] : seedsLeft(from, to, before);
  const startedAt = performance.now();
  let [kept, shownAt] = [0, startedAt];
  const keep = (range) => {
    const amount = range.to - range.from + 1;
    const figures = failures === undefined ? {} : { [failures]: range.failed.length };
    record(kind, { ...range, amount, unit, isPassed: range.failed.length === 0, figures });
    kept += amount;
    if (performance.now() - shownAt < SHOWN_EVERY_MS) return;
    shownAt = performance.now();
    console.log(`${kept} ${unit}`);
  };
  const show = (seed, what, story = []) => {
    console.log(`seed ${seed}: ${what}  (repeat it: npm run ${kind} -- --seed ${seed})`);
    for (const line of story) console.log(`    ${line}`);
  };
  for (const seed of failedBefore) show(seed, "failed in an earlier run on this commit");
  const { failed, finished } = await runSeeds({ program, seeds, workers, keep, onFailure: show, mostFailures });
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(
    `${finished} ${unit} in ${seconds.toFixed(0)} s, ${to - from + 1 - seeds.length} before: ${failed.length + failedBefore.length} failed`,
  );
  process.exit(failed.length + failedBefore.length === 0 ? 0 : 1);
}
