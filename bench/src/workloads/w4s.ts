/** W4s: one signal shared by all waiters: aborted at once, or never aborted and the queue drained normally. */
import { bareSharedSignal } from "../limits.ts";
import { lacksAny, type Subject } from "../subject.ts";
import { costOfBatch, sized } from "../timing.ts";
import type { Case, Workload } from "../workload.ts";
import { heldGate, ignore, Tally, thousands } from "./queued.ts";

const SIZES = [1000, 100_000] as const;

const reason = new Error("no longer wanted");

async function abortAtOnce(subject: Subject, waiters: number): Promise<void> {
  const gate = await heldGate(subject);
  const tally = new Tally(waiters, ignore);
  const controller = new AbortController();
  for (let i = 0; i < waiters; i++) gate.waitUnlessAborted(controller.signal).then(tally.refuse, tally.count);
  controller.abort(reason);
  gate.open();
  await tally.done;
}

async function drain(subject: Subject, waiters: number): Promise<void> {
  const gate = await heldGate(subject);
  const tally = new Tally(waiters, gate.passOn);
  const { signal } = new AbortController();
  for (let i = 0; i < waiters; i++) gate.waitUnlessAborted(signal).then(tally.count, tally.refuse);
  gate.open();
  await tally.done;
}

const goals = (kind: string): Case["goals"] => [
  { kind: "level-with", peers: "all" },
  // Linear as in W3: bare promises also get slower when they no longer fit into a cache.
  { kind: "grows-like-limit", caseId: `W4s/${kind}-${SIZES[0]}`, slack: 0.15 },
];

const sharedSignal =
  (kind: "aborted" | "drained", batch: (subject: Subject, waiters: number) => Promise<void>) =>
  (waiters: number): Case => ({
    id: `W4s/${kind}-${waiters}`,
    title: `one signal shared by ${thousands(waiters)} waiters, ${kind === "aborted" ? "aborted at once" : "drained normally"}`,
    unit: "ns",
    noteKey: `W4s ${kind}`,
    limitTitle: "one listener, one array of bare promises",
    limit: bareSharedSignal,
    absence: (subject) => lacksAny(subject, "signal"),
    measure: async (subject, isShort) => ({
      value: await costOfBatch((count) => batch(subject, count), sized(waiters, isShort), isShort),
    }),
    goals: waiters === SIZES[0] ? [] : goals(kind),
  });

export const w4s: Workload = {
  id: "W4s",
  cases: [sharedSignal("aborted", abortAtOnce), sharedSignal("drained", drain)].flatMap((make) => SIZES.map(make)),
};
