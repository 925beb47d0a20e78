/** The programs of row E1, with their sizes. Every subject implements each of them once, in its own style. */
export interface Workload {
  readonly name: string;
  readonly what: string;
  /** Tasks at a time, rounds of each, permits. */
  readonly tasks: number;
  readonly rounds: number;
  readonly permits: number;
  /** The number of steps (operations of the scheduler or the semaphore) of the program. */
  readonly steps: number;
  readonly program: "rounds" | "helpers" | "crowd" | "parked";
  /** Subjects that are left out, with the reason. */
  readonly without?: Readonly<Record<string, string>>;
}

type Program = (workload: Workload) => Promise<void>;

export interface Subject {
  readonly rounds: Program;
  /** Like `rounds`, with each operation in its own function, as in real programs. */
  readonly helpers: Program;
  readonly crowd: Program;
  /** Calls back when all tasks are parked, then releases them and resolves. */
  readonly parked: (workload: Workload, whenParked: () => void) => Promise<void>;
}

const inRounds = (name: string, what: string, rounds: number, permits: number): Workload => ({
  name,
  what,
  tasks: 100,
  rounds,
  permits,
  steps: 100 * rounds * 3,
  program: name === "helpers" ? "helpers" : "rounds",
});

const grouped = (count: number): string => count.toLocaleString("en");

const crowd = (tasks: number): Workload => ({
  name: `crowd-${tasks}`,
  what: `${grouped(tasks)} tasks over one semaphore of 10, in a cold process: start, acquire, let others run, release`,
  tasks,
  rounds: 1,
  permits: 10,
  steps: tasks * 4,
  program: "crowd",
  without: {
    effect: "its semaphore looks at every waiter at every release: 100,000 tasks take more than five minutes",
  },
});

export function workloads(isShort: boolean): readonly Workload[] {
  const rounds = isShort ? 50 : 500;
  // Not more: Effect takes minutes to park 100,000.
  const parked = 20_000;
  return [
    inRounds("contended", "100 tasks over 10 permits: acquire, let others run, release", rounds, 10),
    inRounds("free", "100 tasks over 100 permits: acquire, let others run, release", rounds, 100),
    inRounds("helpers", "as contended, each operation behind a program (or async function) of its own", rounds, 10),
    crowd(100_000),
    crowd(1_000_000),
    {
      name: "parked",
      what: `bytes per task, ${grouped(parked)} of them parked on one semaphore`,
      tasks: parked,
      rounds: 1,
      permits: 1,
      steps: 0,
      program: "parked",
    },
  ];
}
