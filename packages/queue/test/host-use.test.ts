import {
  type BookRecord,
  type BreakerState,
  type Head,
  type LimitsRecord,
  MemoryStore,
  newHead,
  resolveHost,
  resolveOptions,
} from "@slotkeeper/queue";
import { Book, mayForget } from "@slotkeeper/queue/internals";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";

/** `host-use.ts`: when a host may be forgotten, and how a store counts its hosts. */

const START = 10_000_000;
const MINUTE_MS = 60_000;
/** `GRACE_MS` and `KEPT_MS` of `standing.ts`. */
const GRACE_MS = 10_000;
const KEPT_MS = 10 * MINUTE_MS;

function limitsOf(config: Parameters<typeof resolveOptions>[0]): LimitsRecord {
  const { policy } = resolveHost(resolveOptions(config), undefined);
  return { kind: "limits", key: "", policy, loadedAt: 1 };
}

/** A host at the start, with something that keeps it. */
function hostOf(head: Partial<Head>, records: readonly BookRecord[]): Book {
  return Book.of("h", "1.x", { head: { ...newHead(START, 0), ...head }, records });
}

const BREAKER: BreakerState = { code: 0, errors: 0, successes: 0, consecutive: 0 };
const WAITER = { kind: "waiter", key: "s", instance: "i", bucket: "a", weight: 1, arrivedAt: START } as const;
const LEASE = {
  kind: "lease",
  key: "slot_h.x",
  fence: 1,
  session: "s",
  bucket: "a",
  instance: "i",
  grantedAt: START,
  isReleased: false,
  isProbe: false,
  width: 1,
} as const;
const OFFER = {
  kind: "offer",
  key: "s",
  bucket: "a",
  instance: "i",
  offeredAt: START,
  isProbe: false,
  width: 1,
} as const;
const ENDING = { kind: "ending", key: "s", end: "released" } as const;

interface Kept {
  readonly what: string;
  /** The first time after the start at which the host may be forgotten. */
  readonly untilMs: number;
  readonly head?: Partial<Head>;
  readonly records?: readonly BookRecord[];
}

const KEPT: Kept[] = [
  {
    what: "an offer",
    untilMs: 50,
    records: [{ ...OFFER, lapsesAt: START + 50 }],
  },
  {
    what: "a waiter, until its end is not needed any more",
    untilMs: 3_000 + GRACE_MS,
    records: [{ ...WAITER, deadlineAt: START + 3_000, openMs: 1_000, isInside: true }],
  },
  {
    what: "a cooldown",
    untilMs: 5_000,
    records: [{ kind: "cooldown", key: "a", until: START + 5_000 }],
  },
  {
    what: "an end, for a while after the deadline of its session",
    untilMs: 4_000 + GRACE_MS,
    records: [{ ...ENDING, keepUntil: START + 4_000, endedAt: START }],
  },
  {
    what: "an end of a session that may wait for long, for ten minutes",
    untilMs: 1_000 + KEPT_MS,
    records: [{ ...ENDING, keepUntil: START + 100 * MINUTE_MS, endedAt: START + 1_000 }],
  },
  {
    what: "a lease, until the end of its session is not needed any more",
    untilMs: 2_000 + GRACE_MS,
    records: [{ ...LEASE, endsAt: START + 500, keepUntil: START + 2_000 }],
  },
  {
    what: "a lease that runs longer than its session is remembered",
    untilMs: 90_000,
    records: [{ ...LEASE, endsAt: START + 90_000, keepUntil: START + 2_000 }],
  },
  {
    what: "a budget that is not full",
    untilMs: 7_000,
    head: { fullAt: START + 7_000 },
  },
  {
    what: "the spacing of releases",
    untilMs: 2_000 + 300,
    head: { lastEndAt: START + 2_000 },
    records: [limitsOf({ smoothReleaseIntervalMs: 300 })],
  },
  {
    what: "an open breaker",
    untilMs: 60 * MINUTE_MS + 1_000,
    head: { breaker: { ...BREAKER, openedAt: START + 1_000, code: 503 } },
  },
  {
    what: "an observation window of the breaker, as long as it is by default",
    untilMs: MINUTE_MS + 1,
    head: { breaker: { ...BREAKER, windowStartAt: START, errors: 1 } },
  },
  {
    what: "an observation window of the breaker, as long as the limits say",
    untilMs: 5_001,
    head: { breaker: { ...BREAKER, windowStartAt: START, errors: 1 } },
    records: [limitsOf({ breaker: { windowSeconds: 5 } })],
  },
  {
    what: "forgotten ends of sessions, until a new host would begin with the same",
    untilMs: 1_000 + KEPT_MS - 1_000,
    head: { forgottenAt: START + 1_000 },
  },
];

describe("a host is kept for exactly as long as", () => {
  test.each(KEPT)("$what matters", ({ untilMs, head = {}, records = [] }) => {
    for (const extra of records.some(({ kind }) => kind === "limits") ? [[]] : [[], [limitsOf({})]]) {
      const host = hostOf(head, [...records, ...extra]);
      expect(mayForget(host, START + untilMs - 1), "before").toBe(false);
      expect(mayForget(host, START + untilMs), "at its end").toBe(true);
    }
  });

  test("an operator's limits are set, however long", () => {
    const limits = limitsOf({});
    expect(mayForget(hostOf({}, [limits]), START)).toBe(true);
    expect(mayForget(hostOf({}, [{ ...limits, live: { slots: 2 } }]), START + 1e9)).toBe(false);
  });

  test("any one of its slots matters", () => {
    const [long, short] = [START + 90_000, START + 10];
    for (const ends of [
      [long, short],
      [short, long],
    ]) {
      const leases = ends.map((endsAt, at) => ({
        ...LEASE,
        key: `slot_h.${at}`,
        session: `s${at}`,
        endsAt,
        keepUntil: START,
      }));
      expect(mayForget(hostOf({}, leases), START + 89_999)).toBe(false);
    }
  });
});

describe("the totals of a store", () => {
  async function totalsOf(head: Partial<Head>, records: readonly BookRecord[], afterMs: number) {
    const clock = new VirtualClock();
    const now = clock.now();
    const at = (ms: number | undefined) => (ms === undefined ? undefined : ms - START + now);
    const { breaker = BREAKER } = head;
    const opened = at(breaker.openedAt);
    const moved = { ...newHead(now, 0), ...head, lastEndAt: at(head.lastEndAt) };
    const stored = { ...moved, breaker: opened === undefined ? breaker : { ...breaker, openedAt: opened } };
    const store = new MemoryStore({ clock });
    await store.commit({
      host: "h",
      instance: "i",
      base: undefined,
      tag: "1.x",
      now,
      changes: { head: stored, puts: records, dels: [] },
      hasOthers: false,
      wake: [],
      conflicts: 0,
    });
    await clock.run(afterMs);
    return store.totals();
  }

  test("count a host whose breaker is open or half open, for an hour", async () => {
    const head = { breaker: { ...BREAKER, openedAt: START, code: 503 } };
    expect(await totalsOf(head, [], 60 * MINUTE_MS - 1)).toMatchObject({ hosts: 1, open: 1 });
    expect(await totalsOf(head, [], 60 * MINUTE_MS)).toMatchObject({ hosts: 1, open: 0 });
    expect(await totalsOf({}, [], 0)).toMatchObject({ open: 0 });
  });

  test("count a host while spacing would delay its next release", async () => {
    const spaced = [limitsOf({ smoothReleaseIntervalMs: 300 })];
    expect(await totalsOf({ lastEndAt: START + 100 }, spaced, 399)).toMatchObject({ spaced: 1 });
    expect(await totalsOf({ lastEndAt: START + 100 }, spaced, 400)).toMatchObject({ spaced: 0 });
    expect(await totalsOf({}, spaced, 0)).toMatchObject({ spaced: 0 });
    // Without spacing, or with limits that no one has written yet, a release waits for nothing.
    const none = [limitsOf({ smoothReleaseIntervalMs: 0 })];
    for (const records of [none, []])
      expect(await totalsOf({ lastEndAt: START + 100 }, records, 0)).toMatchObject({ spaced: 0 });
  });

  test("count a host that an operator has paused", async () => {
    const limits = limitsOf({});
    expect(await totalsOf({}, [{ ...limits, live: { isPaused: true } }], 0)).toMatchObject({ paused: 1 });
    expect(await totalsOf({}, [{ ...limits, live: { slots: 3 } }], 0)).toMatchObject({ paused: 0 });
    for (const records of [[limits], []]) expect(await totalsOf({}, records, 0)).toMatchObject({ paused: 0 });
  });
});
