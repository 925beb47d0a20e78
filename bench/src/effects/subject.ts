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

const WARM_UPS = 4;
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
  const runs = workload.program === "crowd" ? { warmUps: 0, measured: 1 } : { warmUps: WARM_UPS, measured: MEASURED };
  const figures: number[] = [];
  for (let i = 0; i < runs.warmUps + runs.measured; i++) {
    const startedAt = process.hrtime.bigint();
    await subject[workload.program as "rounds" | "helpers" | "crowd"](workload);
    if (i >= runs.warmUps) figures.push(Number(process.hrtime.bigint() - startedAt) / workload.steps);
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
