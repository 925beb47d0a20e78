/** One subject, one workload, in this process: prints one number. `node --expose-gc subject.js <subject> <workload>`. */
import { effectFibers } from "./effect-fibers.ts";
import { plainPromises } from "./plain-promises.ts";
import { slotkeeper } from "./slotkeeper.ts";
import { type Subject, type Workload, workloads } from "./workload.ts";

const subjects: Readonly<Record<string, Subject>> = {
  slotkeeper,
  effect: effectFibers,
  promises: plainPromises,
};

/** Long enough for the compiler's own threads to have done their work, on a busy machine too. */
const WARM_UP_MS = 1_500;
const MEASURED = 5;

async function main(): Promise<void> {
  const [subjectName = "", workloadName, length] = process.argv.slice(2);
  const subject = subjects[subjectName];
  const workload = workloads(length === "short").find(({ name }) => name === workloadName);
  if (subject === undefined || workload === undefined) throw new RangeError(`No such row: ${process.argv.join(" ")}`);
  const figure = await (workload.program === "parked" ? bytesPerTask(subject, workload) : nsPerStep(subject, workload));
  console.log(JSON.stringify(figure));
}

async function nsPerStep(subject: Subject, workload: Workload): Promise<number> {
  const program = subject[workload.program as "rounds" | "helpers" | "crowd"];
  // A crowd is measured cold: nobody starts a million tasks twice.
  const isCold = workload.program === "crowd";
  const startedAt = performance.now();
  while (!isCold && performance.now() - startedAt < WARM_UP_MS) await program(workload);
  const figures: number[] = [];
  for (let i = 0; i < (isCold ? 1 : MEASURED); i++) {
    const roundStartedAt = performance.now();
    await program(workload);
    figures.push(((performance.now() - roundStartedAt) * 1e6) / workload.steps);
  }
  return figures.sort((a, b) => a - b)[Math.floor(figures.length / 2)] as number;
}

async function bytesPerTask(subject: Subject, workload: Workload): Promise<number> {
  const heap = (): number => {
    (globalThis as { gc?: () => void }).gc?.();
    return process.memoryUsage().heapUsed;
  };
  await subject.parked({ ...workload, tasks: 100 }, () => {});
  const before = heap();
  let after = before;
  await subject.parked(workload, () => {
    after = heap();
  });
  return (after - before) / workload.tasks;
}

await main();
