/**
 * One subject, one workload, in this process: prints a `Sample`. `node --expose-gc subject.js <subject> <workload>
 * <length> <budgetMs>`.
 */
import { writeSync } from "node:fs";
import { effectFibers } from "./effect-fibers.ts";
import { plainPromises } from "./plain-promises.ts";
import { slotkeeper } from "./slotkeeper.ts";
import { type Subject, type Workload, workloads } from "./workload.ts";

const subjects: Readonly<Record<string, Subject>> = {
  slotkeeper,
  effect: effectFibers,
  promises: plainPromises,
};

/** Shorter samples would measure the error of the clock, because processor time may be counted in coarse ticks. */
const SHORTEST_SAMPLE_MS = 10;

/** The result of one process: minima over the passes, because noise only adds. */
export interface Sample {
  /** Processor time of the whole process, including the threads of the compiler and the collector; or bytes. */
  readonly cpu: number;
  readonly wall: number;
}

async function main(): Promise<void> {
  const [subjectName = "", workloadName, length, budgetMs] = process.argv.slice(2);
  const subject = subjects[subjectName];
  const workload = workloads(length === "short").find(({ name }) => name === workloadName);
  if (subject === undefined || workload === undefined) throw new RangeError(`No such row: ${process.argv.join(" ")}`);
  if (workload.program === "parked") await bytesPerTask(subject, workload);
  else report(await nsPerStep(subject, workload, Number(budgetMs)));
}

/**
 * The budget is processor time: on a busy machine, a fixed wall time would be too short for the code to be compiled.
 */
async function nsPerStep(subject: Subject, workload: Workload, budgetMs: number): Promise<Sample> {
  const program = subject[workload.program as "rounds" | "helpers" | "crowd"];
  // A crowd is measured cold, because a program starts a million tasks only once.
  const isCold = workload.program === "crowd";
  const spentMs = processorClock();
  let cpu = Number.POSITIVE_INFINITY;
  let wall = Number.POSITIVE_INFINITY;
  do {
    const startedAt = performance.now();
    const sampleMs = processorClock();
    let steps = 0;
    do {
      await program(workload);
      steps += workload.steps;
    } while (!isCold && performance.now() - startedAt < SHORTEST_SAMPLE_MS);
    cpu = Math.min(cpu, (sampleMs() * 1e6) / steps);
    wall = Math.min(wall, ((performance.now() - startedAt) * 1e6) / steps);
  } while (!isCold && spentMs() < budgetMs);
  return { cpu, wall };
}

/** The processor time of the whole process since now. */
function processorClock(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e3;
  };
}

async function bytesPerTask(subject: Subject, workload: Workload): Promise<void> {
  const heap = (): number => {
    (globalThis as { gc?: () => void }).gc?.();
    return process.memoryUsage().heapUsed;
  };
  await subject.parked({ ...workload, tasks: 100 }, () => {});
  const before = heap();
  await subject.parked(workload, () => {
    const bytes = (heap() - before) / workload.tasks;
    report({ cpu: bytes, wall: bytes });
  });
}

/** Prints the sample and exits at once: some subjects take minutes to release 100,000 waiters. */
function report(sample: Sample): never {
  writeSync(process.stdout.fd, JSON.stringify(sample));
  process.exit(0);
}

await main();
