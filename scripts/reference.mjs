// The long mode of the comparison with the reference book.
import { parseArgs } from "node:util";
import { compareHistory, formatHistory, memoryHost, randomHistory, shrinkHistory } from "@slotkeeper/testkit/reference";
import { record, recorded } from "./proof/record.mjs";

const HELP = `Usage: npm run reference -- [options]

Gives random histories to the engine's decision and to the reference book (packages/testkit/src/reference), and compares after every step
what clients can see. Stops at the first difference and prints the shortest history that shows it. Continues where the last run on this
commit stopped.

  --histories N   how many, together with earlier runs on this commit (10000)
  --seed N        only the history with this seed
  --help          shows this

Exit codes: 0 no difference; 1 a difference; 2 bad options.`;

const { values } = parseArgs({
  options: {
    help: { type: "boolean", default: false },
    histories: { type: "string", default: "10000" },
    seed: { type: "string" },
  },
});
for (const [name, value] of [
  ["histories", values.histories],
  ["seed", values.seed ?? "1"],
]) {
  if (Number.isSafeInteger(Number(value)) && Number(value) > 0) continue;
  console.error(`Expected --${name} to be a whole number greater than 0, got ${JSON.stringify(value)}. See --help.`);
  process.exit(2);
}

if (values.help) console.log(HELP);
else if (values.seed !== undefined) process.exit((await differs(Number(values.seed))) ? 1 : 0);
else await runAll(Number(values.histories));

async function differs(seed) {
  const compare = (history) => compareHistory(history, memoryHost());
  const history = randomHistory(seed);
  if ((await compare(history)) === undefined) return false;
  const shortest = await shrinkHistory(history, async (shorter) => (await compare(shorter)) !== undefined);
  const { step, what, expected, got } = await compare(shortest);
  console.log(formatHistory(shortest));
  console.log(`seed ${seed}: ${what} differ at step ${step}\n  reference ${expected}\n  engine    ${got}`);
  console.log(`repeat it: npm run reference -- --seed ${seed}`);
  return true;
}

async function runAll(histories) {
  const before = recorded("reference").filter(({ isDifferent }) => !isDifferent);
  const done = before.reduce((sum, part) => sum + part.histories, 0);
  const startedAt = performance.now();
  let [seed, shownAt] = [done + 1, startedAt];
  let isDifferent = false;
  for (; seed <= histories && !isDifferent; seed++) {
    isDifferent = await differs(seed);
    if (performance.now() - shownAt < 20_000) continue;
    shownAt = performance.now();
    console.log(`${seed} histories`);
  }
  const seconds = (performance.now() - startedAt) / 1000;
  const tried = seed - 1 - done;
  if (tried > 0) record("reference", { histories: tried, seconds, isDifferent });
  console.log(`${tried} histories, ${Math.round(tried / seconds)} per second, ${done} before`);
  process.exit(isDifferent ? 1 : 0);
}
