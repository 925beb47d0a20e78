/**
 * W2, W2r: 1,000 tasks over 10 slots, each holding its slot for one microtask.
 *
 * W2 writes the task as an async function that acquires, works and releases. W2r passes the work to `run`. They are two
 * rows because the first pays for the async function and the second does not. Peers that only have `run` are in W2r,
 * next to our `run`.
 */
import { counterAndRing, ringOfWork } from "../limits.ts";
import { gateWith, type NativeLoop, type Subject, type Work } from "../subject.ts";
import { costOfBatch } from "../timing.ts";
import type { Case, Workload } from "../workload.ts";

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

/** Checks that all tasks run, at most ten at a time, and ten at some time. */
async function check(tasks: NativeLoop): Promise<void> {
  let running = 0;
  let most = 0;
  let done = 0;
  await tasks(3 * SLOTS, async () => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 60));
    running -= 1;
    done += 1;
  });
  if (most === SLOTS && done === 3 * SLOTS) return;
  throw new Error(`Expected ${3 * SLOTS} tasks, ${SLOTS} at a time, got ${done} tasks, ${most} at a time.`);
}

const measured =
  (tasksOf: (subject: Subject) => NativeLoop): Case["measure"] =>
  async (subject, isShort) => {
    const tasks = tasksOf(subject);
    return { value: await costOfBatch((count) => tasks(count, microtask), TASKS, isShort) };
  };

const acquiring = (subject: Subject): NativeLoop => subject.native?.W2?.(SLOTS) ?? acquiringTasks(subject);
const scoped = (subject: Subject): NativeLoop => subject.native?.W2?.(SLOTS) ?? scopedTasks(subject);

export const w2: Workload = {
  id: "W2",
  cases: [
    {
      id: "W2",
      title: "1,000 tasks over 10 slots, one microtask of work each: acquire, work, release",
      unit: "ns",
      noteKey: "W2",
      limitTitle: "a counter and a ring of resolvers, no owner",
      limit: counterAndRing,
      absence: (subject) => subject.lacks.slots ?? subject.lacks.acquire,
      check: (subject) => check(acquiring(subject)),
      measure: measured(acquiring),
      goals: [
        { kind: "at-most", factor: 1.25, subject: "limit" },
        { kind: "level-with", peers: "all" },
      ],
    },
    {
      id: "W2r",
      title: "1,000 tasks over 10 slots, one microtask of work each: run(work)",
      unit: "ns",
      noteKey: "W2",
      limitTitle: "a counter and a ring of work, no owner",
      limit: ringOfWork,
      absence: (subject) => subject.lacks.slots ?? subject.lacks.run,
      check: (subject) => check(scoped(subject)),
      measure: measured(scoped),
      goals: [
        { kind: "at-most", factor: 1.4, subject: "limit" },
        { kind: "level-with", peers: "all" },
      ],
    },
  ],
};
