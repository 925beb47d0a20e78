/** W5: `tryAcquire` and `release` of a free slot, synchronously. */
import { counterAndObject, sink } from "../limits.ts";
import { gateWith, lacksAny, type NativeLoop, type Subject } from "../subject.ts";
import { cost } from "../timing.ts";
import type { Workload } from "../workload.ts";

function tryLoop(subject: Subject): NativeLoop {
  const { tryAcquire, release } = gateWith(subject, 1, "tryAcquire", "release");
  return (count) => {
    for (let i = 0; i < count; i++) {
      // The slot escapes, as in real code. Otherwise the engine keeps it in registers and nothing is measured.
      const slot = tryAcquire();
      sink.value = slot;
      release(slot as never);
    }
  };
}

export const w5: Workload = {
  id: "W5",
  cases: [
    {
      id: "W5",
      title: "tryAcquire + release, free",
      unit: "ns",
      noteKey: "W5",
      limitTitle: "a counter and one small object",
      limit: counterAndObject,
      absence: (subject) => lacksAny(subject, "tryAcquire"),
      measure: async (subject, isShort) => {
        const loop = subject.native?.W5?.(1) ?? tryLoop(subject);
        return { value: await cost((count) => loop(count, () => Promise.resolve()), 1_000_000, isShort) };
      },
      goals: [{ kind: "at-most", factor: 2, subject: "limit" }],
    },
  ],
};
