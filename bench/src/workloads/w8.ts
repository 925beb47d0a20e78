/**
 * W8: slots with a time to live. The cost of taking and releasing one while 100,000 others are held; and the cost of
 * all of them from the first acquire to the last release, including one renewal each and garbage collection.
 */
import { type LeaseGate, lacksAny, type Subject } from "../subject.ts";
import { cost, costOfBatch, median, sized } from "../timing.ts";
import type { Workload } from "../workload.ts";
import { thousands } from "./queued.ts";

const SLOTS = 100_000;
const TTL_MS = 600_000;

const gateOf = (subject: Subject, slots: number): LeaseGate => {
  const gate = subject.makeLeased?.(slots, TTL_MS);
  if (gate === undefined) throw new TypeError(`Subject ${subject.id} has no leased gate and does not say why.`);
  return gate;
};

interface Lap {
  readonly timers: number;
  readonly renewNs: number;
}

async function lap(gate: LeaseGate, slots: number): Promise<Lap> {
  const { acquire, renew, release } = gate;
  const held: unknown[] = [];
  for (let i = 0; i < slots; i++) held.push(await acquire());
  const timers = gate.timers();
  const startedAt = process.hrtime.bigint();
  for (const slot of held) renew(slot as never);
  const renewNs = Number(process.hrtime.bigint() - startedAt) / slots;
  for (const slot of held) release(slot as never);
  return { timers, renewNs };
}

async function laps(subject: Subject, slots: number, isShort: boolean) {
  const gate = gateOf(subject, slots);
  const all: Lap[] = [];
  const value = await costOfBatch(async () => void all.push(await lap(gate, slots)), slots, isShort);
  return { value, renewNs: median(all.map((one) => one.renewNs)), timers: Math.max(...all.map((one) => one.timers)) };
}

/** Nanoseconds to take and return one while the others are held. */
async function besideHeld(subject: Subject, slots: number, isShort: boolean) {
  const gate = gateOf(subject, slots + 1);
  const { acquire, release } = gate;
  const held: unknown[] = [];
  for (let i = 0; i < slots; i++) held.push(await acquire());
  const value = await cost(
    async (count) => {
      for (let i = 0; i < count; i++) release((await acquire()) as never);
    },
    200_000,
    isShort,
  );
  const timers = gate.timers();
  for (const slot of held) release(slot as never);
  return { value, extra: { timers } };
}

export const w8: Workload = {
  id: "W8",
  cases: [
    {
      id: "W8",
      title: `acquire and release while ${thousands(SLOTS)} slots with a time to live are outstanding`,
      unit: "ns",
      noteKey: "W8",
      absence: (subject) => lacksAny(subject, "renew"),
      measure: (subject, isShort) => besideHeld(subject, sized(SLOTS, isShort), isShort),
      goals: [
        { kind: "at-most", factor: 3, subject: "slotkeeper", caseId: "W1" },
        { kind: "extra-bound", extra: "timers", most: 1, unit: "" },
      ],
    },
    {
      id: "W8/all",
      title: `${thousands(SLOTS)} slots with a time to live: all acquired, then all renewed, then all released`,
      unit: "ns",
      noteKey: "W8",
      absence: (subject) => lacksAny(subject, "renew"),
      measure: async (subject, isShort) => {
        const few = await laps(subject, 1000, isShort);
        const many = await laps(subject, sized(SLOTS, isShort), isShort);
        return { value: many.value, extra: { timers: many.timers, "renew growth": many.renewNs / few.renewNs } };
      },
      goals: [
        { kind: "extra-bound", extra: "timers", most: 1, unit: "" },
        // From 1,000 to 100,000 slots, a scan would make it 100; the effect of the caches makes it 2.
        { kind: "extra-bound", extra: "renew growth", most: 3, unit: "× from 1,000 to 100,000" },
      ],
    },
  ],
};
