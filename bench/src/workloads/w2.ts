/** W2: 1,000 tasks over 10 slots, each holding its slot for one microtask. */
import { counterAndRing } from "../limits.ts";
import { gateWith, lacksAll, type NativeLoop, type Subject, type Work } from "../subject.ts";
import { nanosecondsPerOperation } from "../timing.ts";
import type { Workload } from "../workload.ts";

const TASKS = 1000;
const SLOTS = 10;

const microtask: Work = () => Promise.resolve();

function acquiringTasks(subject: Subject): NativeLoop {
  const { acquire, release } = gateWith(subject, SLOTS, "acquire", "release");
  const task = async (work: Work): Promise<void> => {
    const handle = await acquire();
    await work();
    release(handle as never);
  };
  return (count, work) => {
    const tasks: Promise<void>[] = [];
    for (let i = 0; i < count; i++) tasks.push(task(work));
    return Promise.all(tasks);
  };
}

function scopedTasks(subject: Subject): NativeLoop {
  const { run } = gateWith(subject, SLOTS, "run");
  return (count, work) => {
    const tasks: PromiseLike<unknown>[] = [];
    for (let i = 0; i < count; i++) tasks.push(run(work));
    return Promise.all(tasks);
  };
}

const tasksOf = (subject: Subject): NativeLoop =>
  subject.native?.W2?.(SLOTS) ?? (subject.lacks.acquire === undefined ? acquiringTasks(subject) : scopedTasks(subject));

/** All tasks run, ten at a time at most, and ten at some time. */
async function check(subject: Subject): Promise<void> {
  let running = 0;
  let most = 0;
  let done = 0;
  await tasksOf(subject)(100, async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
    done += 1;
  });
  if (most !== SLOTS || done !== 100) throw new Error(`Expected 100 tasks, ${SLOTS} at a time, got ${done}, ${most}.`);
}

export const w2: Workload = {
  id: "W2",
  cases: [
    {
      id: "W2",
      title: "1,000 tasks over 10 slots, one microtask of work each",
      unit: "ns",
      noteKey: "W2",
      limitTitle: "a counter and a ring of resolvers, no owner",
      limit: counterAndRing,
      absence: (subject) => subject.lacks.slots ?? lacksAll(subject, "acquire", "run"),
      check,
      measure: async (subject, isShort) => {
        const tasks = tasksOf(subject);
        const plan = { count: TASKS, batches: isShort ? 41 : 301, warmUps: isShort ? 20 : 100 };
        return { value: await nanosecondsPerOperation(plan, (count) => tasks(count, microtask)) };
      },
      goals: [
        { kind: "at-most", factor: 1.25, subject: "limit" },
        { kind: "level-with", peers: "all" },
      ],
    },
  ],
};
