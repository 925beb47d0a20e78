// The long mode of the whole-system simulation.
import { fork } from "node:child_process";
import { parseArgs } from "node:util";
import { simulate } from "@slotkeeper/testkit/simulator";
import { record } from "./proof/record.mjs";

const HELP = `Usage: npm run simulate -- [options]

Runs whole fleets with faults in virtual time, one history for each seed, and checks the invariants after every step. The
independent checker (packages/testkit/src/history) judges what the clients of each history saw.

  --seeds N      how many seeds (10000)
  --from N       the first one (1)
  --seed N       one seed, with its violations and the events before them: repeats a failure
  --workers N    processes (2)
  --help         shows this`;

const { values } = parseArgs({
  options: {
    help: { type: "boolean", default: false },
    seed: { type: "string" },
    seeds: { type: "string", default: process.env.SLOTKEEPER_SEEDS ?? "10000" },
    from: { type: "string", default: "1" },
    workers: { type: "string", default: "2" },
    worker: { type: "string" },
  },
});

/** The number of events that are shown for a violation; a run of one seed prints more. */
const SHORT_HISTORY = 8;

if (values.help) console.log(HELP);
else if (values.seed !== undefined) await replay(Number(values.seed));
else if (values.worker !== undefined) await work(Number(values.worker));
else await runAll();

/** The violations of the invariants, then those that the independent checker found. */
async function judged(seed) {
  const { violations, verdict, history } = await simulate(seed);
  const found = verdict.violations.map(({ rule, at, host, detail }) => `${rule} at ${at}: ${host}: ${detail}`);
  return { seed, violations: [...violations, ...found], history };
}

async function replay(seed) {
  const { violations, history } = await judged(seed);
  for (const line of [...history, ...violations]) console.log(line);
  console.log(violations.length === 0 ? `seed ${seed}: clean` : `seed ${seed}: ${violations.length} violations`);
  process.exit(violations.length === 0 ? 0 : 1);
}

async function work(first) {
  const end = Number(values.from) + Number(values.seeds);
  for (let seed = Number(values.from) + first; seed < end; seed += Number(values.workers)) {
    process.send(await judged(seed));
  }
  process.exit(0);
}

async function runAll() {
  const startedAt = performance.now();
  const failed = [];
  let done = 0;
  const workers = Array.from({ length: Number(values.workers) }, (_, index) => {
    const args = ["--from", values.from, "--seeds", values.seeds, "--workers", values.workers, "--worker", `${index}`];
    const worker = fork(import.meta.filename, args);
    worker.on("message", ({ seed, violations, history }) => {
      done++;
      if (violations.length > 0) {
        failed.push(seed);
        console.log(`seed ${seed}: ${violations[0]}  (replay: npm run simulate -- --seed ${seed})`);
        for (const line of history.slice(-SHORT_HISTORY)) console.log(`    ${line}`);
      }
      if (done % 1000 === 0) console.log(`${done} seeds, ${failed.length} with violations`);
    });
    return new Promise((resolve) => worker.on("exit", resolve));
  });
  const codes = await Promise.all(workers);
  const seconds = (performance.now() - startedAt) / 1000;
  const isPassed = failed.length === 0 && done === Number(values.seeds) && codes.every((code) => code === 0);
  const [from, to] = [Number(values.from), Number(values.from) + Number(values.seeds) - 1];
  record("simulate", {
    part: `seeds ${from} to ${to}`,
    amount: done,
    unit: "seeds",
    isPassed,
    isWhole: true,
    seconds,
    figures: { "seeds with violations": failed.length },
  });
  console.log(`${done} of ${values.seeds} seeds in ${seconds.toFixed(0)} s: ${failed.length} with violations`);
  process.exit(isPassed ? 0 : 1);
}
