/**
 * W7: distinct keys, each taken and released once, then swept: with the keys of the library, or with a `Map` around it.
 */
import type { KeyedGate, Subject } from "../subject.ts";
import { costOfBatch, liveHeapBytes, sized } from "../timing.ts";
import type { Workload } from "../workload.ts";
import { thousands } from "./queued.ts";

const KEYS = 100_000;

const gateOf = (subject: Subject): KeyedGate => {
  const gate = subject.makeKeyed?.();
  if (gate === undefined) throw new TypeError(`Subject ${subject.id} has no keyed gate.`);
  return gate;
};

async function cycleAll(gate: KeyedGate, keys: readonly string[]): Promise<void> {
  const { lookup, acquire, release } = gate;
  for (const key of keys) {
    const limiter = lookup(key);
    release((await acquire(limiter as never)) as never, limiter as never);
  }
  gate.sweep();
}

export const w7: Workload = {
  id: "W7",
  cases: [
    {
      id: "W7",
      title: `${thousands(KEYS)} distinct keys acquired and released, then swept`,
      unit: "ns",
      noteKey: "W7",
      needsGc: true,
      absence: (subject) => (subject.makeKeyed === undefined ? subject.lacks.acquire : undefined),
      measure: async (subject, isShort) => {
        const keys = Array.from({ length: sized(KEYS, isShort) }, (_, i) => `user-${i}`);
        const gate = gateOf(subject);
        const value = await costOfBatch(() => cycleAll(gate, keys), keys.length, isShort);
        const before = liveHeapBytes();
        await cycleAll(gate, keys);
        return { value, extra: { "bytes left per key": (liveHeapBytes() - before) / keys.length } };
      },
      goals: [
        { kind: "level-with", peers: "all" },
        { kind: "extra-bound", extra: "bytes left per key", most: 1, unit: "B" },
      ],
    },
  ],
};
