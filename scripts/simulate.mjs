// The long mode of the whole-system simulation.
import { parseArgs } from "node:util";
import { isMainThread } from "node:worker_threads";
import { simulate } from "@slotkeeper/testkit/simulator";
import { proveSeeds, wholeNumber } from "./proof/prove-seeds.mjs";
import { answerSeeds, LIMIT_MS } from "./proof/seeds.mjs";

const HELP = `Usage: npm run simulate -- [options]

Runs whole fleets with faults in virtual time, one history for each seed, and checks the invariants after every step. The
independent checker (packages/testkit/src/history) judges what the clients of each history saw. A seed that does not end within
${LIMIT_MS / 1000} s counts as failed. Continues where the runs on this commit stopped.

  --seeds N      how many seeds, together with earlier runs on this commit (10000)
  --from N       the first one (1)
  --seed N       one seed, with its violations and the events before them: repeats a failure
  --workers N    threads (2)
  --help         shows this

Exit codes: 0 no violation; 1 a violation, also of an earlier run on this commit; 2 bad options.`;

/** The number of events that are shown for a violation; a run of one seed prints more. */
const SHORT_HISTORY = 8;

if (isMainThread) await main();
else answerSeeds(answer);

/** The violations of the invariants, then those that the independent checker found. */
async function judged(seed) {
  const { violations, verdict, history } = await simulate(seed);
  const found = verdict.violations.map(({ rule, at, host, detail }) => `${rule} at ${at}: ${host}: ${detail}`);
  return { violations: [...violations, ...found], history };
}

async function answer(seed) {
  const { violations, history } = await judged(seed);
  return violations.length === 0 ? undefined : { what: violations[0], story: history.slice(-SHORT_HISTORY) };
}

async function replay(seed) {
  const { violations, history } = await judged(seed);
  for (const line of [...history, ...violations]) console.log(line);
  console.log(violations.length === 0 ? `seed ${seed}: clean` : `seed ${seed}: ${violations.length} violations`);
  process.exit(violations.length === 0 ? 0 : 1);
}

async function main() {
  const { values } = parseArgs({
    options: {
      help: { type: "boolean", default: false },
      seed: { type: "string" },
      seeds: { type: "string", default: process.env.SLOTKEEPER_SEEDS ?? "10000" },
      from: { type: "string", default: "1" },
      workers: { type: "string", default: "2" },
    },
  });
  if (values.help) console.log(HELP);
  else if (values.seed !== undefined) await replay(wholeNumber("seed", values.seed));
  else {
    const from = wholeNumber("from", values.from);
    await proveSeeds({
      kind: "simulate",
      unit: "seeds",
      failures: "seeds with violations",
      program: import.meta.filename,
      from,
      to: from + wholeNumber("seeds", values.seeds) - 1,
      workers: wholeNumber("workers", values.workers),
    });
  }
}
