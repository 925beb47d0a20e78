/**
 * W1, W1s, W1r: a free slot is taken and released, again and again: by `acquire`, by `tryAcquire` with `acquire` as a
 * fallback, and by `run`. One slot, no waiters.
 */
import { bareWork, settledPromise } from "../limits.ts";
import { gateWith, lacksAny, type NativeLoop, type Subject } from "../subject.ts";
import { cost } from "../timing.ts";
import type { Case, Workload } from "../workload.ts";

const MOST = 200_000;

const work = async (): Promise<number> => 1;

function acquireLoop(subject: Subject): NativeLoop {
  const { acquire, release } = gateWith(subject, 1, "acquire", "release");
  return async (count) => {
    for (let i = 0; i < count; i++) release((await acquire()) as never);
  };
}

function tryLoop(subject: Subject): NativeLoop {
  const { tryAcquire, acquire, release } = gateWith(subject, 1, "tryAcquire", "acquire", "release");
  return async (count) => {
    for (let i = 0; i < count; i++) release((tryAcquire() ?? (await acquire())) as never);
  };
}

function runLoop(subject: Subject): NativeLoop {
  const { run } = gateWith(subject, 1, "run");
  return async (count) => {
    for (let i = 0; i < count; i++) await run(work);
  };
}

const timed = async (loop: NativeLoop, isShort: boolean) => ({
  value: await cost((count) => loop(count, work), MOST, isShort),
});

const acquired: Case = {
  id: "W1",
  title: "const s = await sem.acquire(); s.release(), free",
  unit: "ns",
  noteKey: "W1",
  limitTitle: "await Promise.resolve(object)",
  limit: settledPromise,
  absence: (subject) => lacksAny(subject, "acquire"),
  measure: (subject, isShort) => timed(subject.native?.W1?.(1) ?? acquireLoop(subject), isShort),
  goals: [
    { kind: "at-most", factor: 1.25, subject: "limit" },
    { kind: "ahead-of", peers: "full" },
  ],
};

const tried: Case = {
  id: "W1s",
  title: "sem.tryAcquire() ?? await sem.acquire(), free",
  unit: "ns",
  noteKey: "W1s",
  limitTitle: "that of W1: await Promise.resolve(object)",
  limit: settledPromise,
  absence: (subject) => lacksAny(subject, "acquire", "tryAcquire"),
  measure: (subject, isShort) => timed(subject.native?.W1s?.(1) ?? tryLoop(subject), isShort),
  goals: [{ kind: "at-most", factor: 0.25, subject: "limit" }],
};

const scoped: Case = {
  id: "W1r",
  title: "await sem.run(work), free",
  unit: "ns",
  noteKey: "W1r",
  limitTitle: "await work(), no limiter",
  limit: bareWork,
  absence: (subject) => lacksAny(subject, "run"),
  measure: (subject, isShort) => timed(subject.native?.W1r?.(1) ?? runLoop(subject), isShort),
  goals: [
    { kind: "faster-than", factor: 5, peers: ["p-limit"] },
    { kind: "level-with", peers: "all" },
  ],
};

export const w1: Workload = { id: "W1", cases: [acquired] };
export const w1s: Workload = { id: "W1s", cases: [tried] };
export const w1r: Workload = { id: "W1r", cases: [scoped] };
