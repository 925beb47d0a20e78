// The long mode of the comparison with the reference book.
import { parseArgs } from "node:util";
import { isMainThread } from "node:worker_threads";
import { compareHistory, formatHistory, memoryHost, randomHistory, shrinkHistory } from "@slotkeeper/testkit/reference";
import { proveSeeds, wholeNumber } from "./proof/prove-seeds.mjs";
import { answerSeeds } from "./proof/seeds.mjs";

const HELP = `Usage: npm run reference -- [options]

Gives random histories to the engine's decision and to the reference book (packages/testkit/src/reference), and compares after every step
what clients can see. Stops at the first difference and prints the shortest history that shows it. Continues where the runs on this
commit stopped.

  --histories N   how many, together with earlier runs on this commit (10000)
  --seed N        only the history with this seed
  --workers N     threads (2)
  --help          shows this

Exit codes: 0 no difference; 1 a difference, also of an earlier run on this commit; 2 bad options.`;

if (isMainThread) await main();
else answerSeeds(differenceOf);

async function differenceOf(seed) {
  const compare = (history) => compareHistory(history, memoryHost());
  const history = randomHistory(seed);
  if ((await compare(history)) === undefined) return undefined;
  const shortest = await shrinkHistory(history, async (shorter) => (await compare(shorter)) !== undefined);
  const { step, what, expected, got } = await compare(shortest);
  const story = [...formatHistory(shortest).split("\n"), `reference ${expected}`, `engine    ${got}`];
  return { what: `${what} differ at step ${step}`, story };
}

async function replay(seed) {
  const difference = await differenceOf(seed);
  for (const line of difference?.story ?? []) console.log(line);
  console.log(`seed ${seed}: ${difference?.what ?? "no difference"}`);
  process.exit(difference === undefined ? 0 : 1);
}

async function main() {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", default: false },
      histories: { type: "string", default: "10000" },
      seed: { type: "string" },
      workers: { type: "string", default: "2" },
    },
  });
  if (values.help) console.log(HELP);
  else if (values.seed !== undefined) await replay(wholeNumber("seed", values.seed));
  else {
    await proveSeeds({
      kind: "reference",
      unit: "histories",
      program: import.meta.filename,
      from: 1,
      to: wholeNumber("histories", values.histories),
      workers: wholeNumber("workers", values.workers),
      mostFailures: 1,
    });
  }
}
