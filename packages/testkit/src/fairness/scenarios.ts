import type { Group, Scenario } from "./scenario.ts";

const SECOND = 1_000;

function same(count: number, group: Omit<Group, "name">): Group[] {
  return Array.from({ length: count }, (_, index) => ({ name: `bucket-${index}`, ...group }));
}

/** Every line of the issue. Each runs for more than a thousand holds. */
export const SCENARIOS: readonly Scenario[] = [
  {
    name: "equal demand",
    slots: 4,
    groups: same(8, { clients: 4, holdMs: 100 }),
    phasesMs: [48 * SECOND],
    fails: [],
  },
  {
    name: "one greedy bucket",
    slots: 4,
    groups: [{ name: "greedy", clients: 60, holdMs: 100 }, ...same(7, { clients: 2, holdMs: 100 })],
    phasesMs: [48 * SECOND],
    fails: ["fifo"],
  },
  {
    name: "unequal holds, twenty to one",
    slots: 2,
    groups: [{ name: "slow", clients: 4, holdMs: 1_000 }, ...same(3, { clients: 4, holdMs: 50 })],
    phasesMs: [396 * SECOND],
    fails: ["fifo", "count-grants"],
  },
  {
    name: "a trickle against a flood",
    slots: 2,
    groups: [
      { name: "trickle", everyMs: 1_000, holdMs: 100 },
      { name: "flood", clients: 40, holdMs: 100 },
    ],
    phasesMs: [204 * SECOND],
    fails: [],
  },
  {
    name: "one fresh bucket per request",
    slots: 4,
    groups: [
      { name: "fresh", clients: 10, holdMs: 100, isFreshBucketEach: true },
      { name: "steady", clients: 10, holdMs: 100 },
    ],
    phasesMs: [120 * SECOND],
    fails: ["fifo", "count-grants"],
  },
  {
    name: "weights three to one on one slot",
    slots: 1,
    groups: [
      { name: "three", clients: 8, holdMs: 100, weight: 3 },
      { name: "one", clients: 8, holdMs: 100, weight: 1 },
    ],
    phasesMs: [120 * SECOND],
    fails: ["fifo"],
  },
  {
    name: "weights three to one on five slots, unequal holds",
    slots: 5,
    groups: [
      { name: "three", clients: 8, holdMs: 70, weight: 3 },
      { name: "one", clients: 8, holdMs: 700, weight: 1 },
    ],
    phasesMs: [144 * SECOND],
    fails: ["fifo", "count-grants"],
  },
  {
    name: "weights nine, two and one, the first at its limit",
    slots: 4,
    cap: 2,
    groups: [
      { name: "nine", clients: 8, holdMs: 90, weight: 9 },
      { name: "two", clients: 8, holdMs: 130, weight: 2 },
      { name: "one", clients: 8, holdMs: 110, weight: 1 },
    ],
    phasesMs: [36 * SECOND],
    fails: ["fifo"],
  },
  {
    name: "fewer buckets than slots",
    slots: 7,
    groups: [{ name: "long", clients: 20, holdMs: 900 }, ...same(2, { clients: 20, holdMs: 60 })],
    phasesMs: [120 * SECOND],
    fails: ["fifo", "count-grants"],
  },
  {
    name: "more buckets than slots",
    slots: 3,
    groups: [...same(20, { clients: 2, holdMs: 50 }), { name: "long", clients: 2, holdMs: 250 }],
    phasesMs: [360 * SECOND],
    fails: ["fifo", "count-grants"],
  },
  {
    name: "closed loop of one client each",
    slots: 4,
    groups: [...same(9, { clients: 1, holdMs: 80 }), { name: "long", clients: 1, holdMs: 400 }],
    phasesMs: [204 * SECOND],
    fails: ["fifo", "count-grants"],
  },
  {
    name: "heavy, then idle, then back",
    slots: 4,
    groups: [
      { name: "sleeper", clients: 40, holdMs: 100, phases: [0, 2] },
      { name: "steady", clients: 10, holdMs: 100 },
      { name: "second", clients: 10, holdMs: 100 },
    ],
    phasesMs: [120 * SECOND, 120 * SECOND, 120 * SECOND],
    fails: ["fifo", "count-grants"],
  },
  {
    name: "every bucket limited to one slot",
    slots: 4,
    cap: 1,
    groups: [{ name: "greedy", clients: 30, holdMs: 300 }, ...same(6, { clients: 2, holdMs: 100 })],
    phasesMs: [120 * SECOND],
    fails: ["fifo", "count-grants"],
  },
];
