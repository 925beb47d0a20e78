/** The programs of row E1, in sizes; every subject implements each of them once, in its own idiom. */
export interface Workload {
  readonly name: string;
  readonly what: string;
  /** Tasks at once, rounds of each, permits. */
  readonly tasks: number;
  readonly rounds: number;
  readonly permits: number;
  /** Steps (operations asked of the scheduler or the semaphore) that the program takes. */
  readonly steps: number;
  readonly program: "rounds" | "helpers" | "crowd" | "parked";
  /** Subjects that are left out, and why. */
  readonly without?: Readonly<Record<string, string>>;
}

type Program = (workload: Workload) => Promise<void>;

export interface Subject {
  readonly rounds: Program;
  /** As `rounds`, with each operation behind a function of its own, as programs are written. */
  readonly helpers: Program;
  readonly crowd: Program;
  /** Resolves when all are parked; calls back then, and lets them go. */
  readonly parked: (workload: Workload, whenParked: () => void) => Promise<void>;
}

export function workloads(isShort: boolean): readonly Workload[] {
  const rounds = isShort ? 50 : 500;
  const crowd = isShort ? 100_000 : 1_000_000;
  const parked = isShort ? 20_000 : 100_000;
  return [
    {
      name: "contended",
      what: "100 tasks over 10 permits: acquire, let others run, release",
      tasks: 100,
      rounds,
      permits: 10,
      steps: 100 * rounds * 3,
      program: "rounds",
    },
    {
      name: "free",
      what: "100 tasks over 100 permits: acquire, let others run, release",
      tasks: 100,
      rounds,
      permits: 100,
      steps: 100 * rounds * 3,
      program: "rounds",
    },
    {
      name: "helpers",
      what: "as contended, each operation behind a helper program (or async function) of its own",
      tasks: 100,
      rounds,
      permits: 10,
      steps: 100 * rounds * 3,
      program: "helpers",
    },
    {
      name: "crowd",
      what: `${crowd.toLocaleString("en")} tasks over one semaphore of 10: start, acquire, let others run, release`,
      tasks: crowd,
      rounds: 1,
      permits: 10,
      steps: crowd * 4,
      program: "crowd",
      without: {
        effect: "its semaphore looks at every waiter at every release: 100,000 tasks take more than five minutes",
      },
    },
    {
      name: "parked",
      what: `bytes per task, ${parked.toLocaleString("en")} of them parked on one semaphore`,
      tasks: parked,
      rounds: 1,
      permits: 1,
      steps: 0,
      program: "parked",
    },
  ];
}
