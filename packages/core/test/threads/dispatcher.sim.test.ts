/**
 * The algorithm, by brute force: the real code of `src/threads`, every interleaving of its accesses to shared memory, and
 * for recovery every instant at which a thread can die. Short mode bounds the number of preemptions of the larger
 * scenarios; `SLOTKEEPER_LONG=1` explores more.
 */
import { describe, expect, it } from "vitest";
import {
  CANCELLED,
  CLOSED_AT,
  DESK,
  FREE,
  HIGHEST,
  kindOf,
  type Memory,
  RETIRED,
  UNUSED,
} from "../../src/threads/memory.ts";
import { type SyncOutcome, waitSync } from "../../src/threads/sync-wait.ts";
import { type Actor, type Explored, explore, type Scenario, threadIdOf } from "./explore.ts";

const isLong = process.env["SLOTKEEPER_LONG"] === "1";
const sizes = { slots: 1, maxHolders: 1, maxWaiters: 4, ttlMs: 0 };

/** Takes a slot, by the fast path or through the queue, and gives it back. */
function acquireAndRelease({ attachment, now }: Actor, until = Number.POSITIVE_INFINITY): SyncOutcome["kind"] {
  const cell = attachment.take();
  if (cell >= 0) {
    if (!attachment.free(cell, attachment.tag)) throw new Error("A slot was lost");
    return "granted";
  }
  const outcome = waitSync(attachment, attachment.enqueue(), { until, now, spins: 0 });
  if (outcome.kind === "granted" && !outcome.slot.release()) throw new Error("A slot was lost");
  return outcome.kind;
}

const patient = (actor: Actor) => void acquireAndRelease(actor);
const impatient = (actor: Actor) => void acquireAndRelease(actor, actor.now() + 1);
const reapTheFirst = ({ attachment }: Actor) => void attachment.reap(threadIdOf(0));

/** All slots free, no thread at the desk, no waiter in a cell. */
function expectWhole(memory: Memory, free = 1): void {
  const holders = Array.from({ length: memory.maxHolders }, (_, cell) => memory.load(memory.holder(cell)));
  expect(holders.filter((word) => word === FREE).length).toBe(free);
  expect(holders.every((word) => word === FREE || word === RETIRED)).toBe(true);
  expect(memory.load(DESK)).toBe(0);
  for (let cell = 1; cell <= memory.load(HIGHEST); cell++) {
    expect([UNUSED, CANCELLED]).toContain(kindOf(memory.load(memory.state(cell))));
  }
}

function exploreAll(scenario: Scenario): Explored {
  const startedAt = performance.now();
  const explored = explore({ atEnd: (memory) => expectWhole(memory), ...scenario });
  if (isLong) console.log(expect.getState().currentTestName, explored, Math.round(performance.now() - startedAt), "ms");
  expect(explored.ends).toBeGreaterThan(0);
  return explored;
}

describe("in every interleaving", { timeout: 3_600_000 }, () => {
  it("two threads that want one slot both get it, in order, and leave it free (DISPATCH1, DISPATCH3, DISPATCH5)", () => {
    exploreAll({ sizes, programs: [patient, patient] });
  });

  it("a waiter that gives up swallows no wake-up (DISPATCH5, DISPATCH6)", () => {
    exploreAll({ sizes, programs: [patient, impatient] });
  });

  it("three threads, one of them impatient, lose nothing (DISPATCH3, DISPATCH5, DISPATCH6)", () => {
    const maxPreemptions = isLong ? 4 : 2;
    exploreAll({ sizes, programs: [patient, impatient, patient], maxPreemptions });
  });

  it("a thread that leaves the desk with work undone finds another to do it (DESK2, DESK3)", () => {
    exploreAll({ sizes, programs: [patient, patient, impatient], maxRounds: 1, maxPreemptions: isLong ? 4 : 2 });
  });

  it("a thread that dies at any access is recovered, and the other still gets its turn (DISPATCH7)", () => {
    exploreAll({
      sizes,
      programs: [patient, patient, reapTheFirst],
      victim: 0,
      reaper: 2,
      ...(isLong ? {} : { maxPreemptions: 2 }),
    });
  });

  it("a thread that dies at any access of giving up is recovered (DISPATCH6, DISPATCH7)", () => {
    exploreAll({
      sizes,
      programs: [impatient, patient, reapTheFirst],
      victim: 0,
      reaper: 2,
      maxPreemptions: isLong ? 4 : 2,
    });
  });

  it("closing rejects the waiters, and none is left behind", () => {
    exploreAll({
      sizes,
      programs: [patient, patient, ({ attachment }) => attachment.close()],
      maxPreemptions: isLong ? 4 : 2,
      atEnd: (memory) => {
        expectWhole(memory);
        expect(memory.load(CLOSED_AT)).toBe(1);
      },
    });
  });

  it("growing serves the waiters", () => {
    exploreAll({
      sizes: { ...sizes, maxHolders: 2 },
      programs: [
        // Never released: only the second slot can serve the other.
        ({ attachment }) => void attachment.take(),
        patient,
        ({ attachment }) => attachment.resize(2),
      ],
      maxPreemptions: isLong ? 4 : 2,
      atEnd: () => {},
    });
  });

  it("shrinking leaves exactly the wanted capacity once all have released (DISPATCH1)", () => {
    exploreAll({
      sizes: { ...sizes, slots: 2, maxHolders: 2 },
      programs: [patient, patient, ({ attachment }) => attachment.resize(1)],
      maxPreemptions: isLong ? 4 : 2,
    });
  });

  it("more waiters than allowed are refused, and those that wait are served", () => {
    exploreAll({
      sizes: { ...sizes, maxWaiters: 1 },
      programs: [patient, patient, patient],
      maxPreemptions: isLong ? 4 : 2,
    });
  });

  it("an overdue slot is either taken back or renewed, never both (TLEASE1, DISPATCH2)", () => {
    exploreAll({
      sizes: { ...sizes, ttlMs: 5 },
      programs: [
        ({ attachment }) => {
          const cell = attachment.take();
          if (cell < 0) return;
          const { tag } = attachment;
          const renewed = attachment.renew(cell, tag, 2 ** 29);
          const isFreed = attachment.free(cell, renewed || tag);
          if (isFreed !== (renewed !== 0)) throw new Error("Renewed and taken back, or neither");
        },
        patient,
      ],
      // The second thread's clock is far ahead of what the first has set, not of what it renews to.
      startAt: [0, 1000],
      ...(isLong ? {} : { maxPreemptions: 3 }),
    });
  });
});

describe("the explorer finds", () => {
  it("a lost wake-up, when a thread dies and no other reaps it", () => {
    expect(() => explore({ sizes, programs: [patient, patient], victim: 0 })).toThrow("lost wake-up");
  });
});
