/** W3: waiters on one slot, which are then served: the cost of a queue as it gets long. */
import { arrayOfResolvers } from "../limits.ts";
import { lacksAll, type Subject } from "../subject.ts";
import { costOfBatch, sized } from "../timing.ts";
import type { Case, Workload } from "../workload.ts";
import { GROWTH_ONLY, heldGate, Tally, thousands } from "./queued.ts";

async function drain(subject: Subject, waiters: number): Promise<void> {
  const gate = await heldGate(subject);
  const tally = new Tally(waiters, gate.passOn);
  const { wait } = gate;
  for (let i = 0; i < waiters; i++) void wait().then(tally.count, tally.refuse);
  gate.open();
  await tally.done;
}

/** Checks that no waiter passes before the holder releases, and that they are served in the order of arrival. */
async function check(subject: Subject): Promise<void> {
  const gate = await heldGate(subject);
  const order: number[] = [];
  const tally = new Tally(50, gate.passOn);
  for (let i = 0; i < 50; i++) {
    void gate.wait().then((handle) => {
      order.push(i);
      tally.count(handle);
    }, tally.refuse);
  }
  await new Promise((resolve) => setTimeout(resolve, 10));
  if (order.length > 0) throw new Error(`Expected no waiter to pass a held slot, got ${order.length} waiters.`);
  gate.open();
  await tally.done;
  if (order.some((value, i) => value !== i)) throw new Error(`Expected the order of arrival, got ${order.join(" ")}.`);
}

const queueOf = (waiters: number, parts: Pick<Case, "goals" | "peersLeftOut">): Case => ({
  id: `W3/${waiters}`,
  title: `${thousands(waiters)} waiters on one slot, then drained`,
  unit: "ns",
  noteKey: "W3",
  limitTitle: "a plain array of resolvers and an index",
  limit: arrayOfResolvers,
  absence: (subject) => lacksAll(subject, "acquire", "run"),
  check,
  measure: async (subject, isShort) => ({
    value: await costOfBatch((count) => drain(subject, count), sized(waiters, isShort), isShort),
  }),
  ...parts,
});

export const w3: Workload = {
  id: "W3",
  cases: [
    queueOf(10_000, { goals: [], peersLeftOut: GROWTH_ONLY }),
    queueOf(100_000, { goals: [{ kind: "near-cheapest-peer", factor: 1.5 }] }),
    queueOf(1_000_000, {
      goals: [{ kind: "grows-like-limit", caseId: "W3/10000", slack: 0.15 }],
      peersLeftOut: GROWTH_ONLY,
    }),
  ],
};
