/**
 * W4: waiters that all give up: each is aborted through its own signal, or times out, the last arrival first or in
 * random order.
 *
 * All aborts share one reason, so that creating exceptions does not dominate the cost of a library.
 */
import { abortsWithListener, bareAborts, bareTimeouts } from "../limits.ts";
import { lacksAny, type Subject } from "../subject.ts";
import { busyCostOfBatch, costOfBatch, sized } from "../timing.ts";
import type { Case, Workload } from "../workload.ts";
import { heldGate, ignore, shuffled, Tally, thousands } from "./queued.ts";

type Order = "reverse" | "random";
const SIZES = [1000, 100_000] as const;
const ORDERS: readonly Order[] = ["reverse", "random"];

const reason = new Error("no longer wanted");

const reversed = (count: number): number[] => Array.from({ length: count }, (_, i) => count - 1 - i);
const orderOf = (order: Order, count: number): number[] => (order === "reverse" ? reversed(count) : shuffled(count));

async function abortAll(subject: Subject, order: readonly number[]): Promise<void> {
  const gate = await heldGate(subject);
  const tally = new Tally(order.length, ignore);
  const controllers: AbortController[] = [];
  for (let i = 0; i < order.length; i++) {
    const controller = new AbortController();
    controllers.push(controller);
    gate.waitUnlessAborted(controller.signal).then(tally.refuse, tally.count);
  }
  for (const index of order) (controllers[index] as AbortController).abort(reason);
  gate.open();
  await tally.done;
}

/** The number of different durations: with one, all orders would be the same. */
const DURATIONS = 16;

/** The timeout of each waiter, so that they time out in the given order. */
function durationsOf(order: readonly number[], shortestMs: number): number[] {
  const durations: number[] = [];
  order.forEach((waiter, turn) => {
    durations[waiter] = shortestMs + Math.floor((turn * DURATIONS) / order.length);
  });
  return durations;
}

async function timeOutAll(subject: Subject, durations: readonly number[]): Promise<number> {
  const gate = await heldGate(subject);
  const tally = new Tally(durations.length, ignore);
  for (const timeoutMs of durations) gate.waitWithin(timeoutMs).then(tally.refuse, tally.count);
  const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  await tally.done;
  gate.open();
  return timers;
}

/** Goals of the large size; the small one is the reference for growth. */
const abortGoals = (order: Order): Case["goals"] => [
  { kind: "at-most", factor: 1.3, subject: "limit" },
  { kind: "level-with", peers: "all" },
  { kind: "linear", factor: 1.5, caseId: `W4/abort-${order}-${SIZES[0]}` },
];

const timeoutGoals = (order: Order): Case["goals"] => [
  { kind: "faster-than", factor: 1, peers: "all" },
  { kind: "extra-bound", extra: "timers", most: DURATIONS, unit: "" },
  { kind: "linear", factor: 1.5, caseId: `W4/timeout-${order}-${SIZES[0]}` },
];

const aborted = (order: Order, waiters: number): Case => ({
  id: `W4/abort-${order}-${waiters}`,
  title: `${thousands(waiters)} waiters, each aborted through its signal, in ${order} order`,
  unit: "ns",
  noteKey: "W4 aborts",
  limitTitle: "making and aborting the controllers and rejecting bare promises, which do not listen",
  limit: bareAborts,
  yardsticks: [abortsWithListener],
  absence: (subject) => lacksAny(subject, "signal"),
  measure: async (subject, isShort) => {
    const indices = orderOf(order, sized(waiters, isShort));
    return { value: await costOfBatch(() => abortAll(subject, indices), indices.length, isShort) };
  },
  goals: waiters === SIZES[0] ? [] : abortGoals(order),
});

const timedOut = (order: Order, waiters: number): Case => ({
  id: `W4/timeout-${order}-${waiters}`,
  title: `${thousands(waiters)} waiters, all timed out, ${DURATIONS} durations, in ${order} order (busy time)`,
  unit: "ns",
  noteKey: "W4 timeouts",
  limitTitle: "bare promises in one array and one timer per duration, one shared error",
  limit: bareTimeouts,
  absence: (subject) => lacksAny(subject, "timeout"),
  measure: async (subject, isShort) => {
    const durations = durationsOf(orderOf(order, sized(waiters, isShort)), waiters === SIZES[0] || isShort ? 5 : 200);
    let timers = 0;
    const value = await busyCostOfBatch(
      async () => {
        timers = await timeOutAll(subject, durations);
      },
      durations.length,
      isShort,
    );
    return { value, extra: { timers } };
  },
  goals: waiters === SIZES[0] ? [] : timeoutGoals(order),
});

export const w4: Workload = {
  id: "W4",
  cases: [aborted, timedOut].flatMap((make) => ORDERS.flatMap((order) => SIZES.map((size) => make(order, size)))),
};
