import { type CallLine, type HistoryLine, judgeHistory, type RuleName } from "@slotkeeper/testkit/history";
import { Random } from "@slotkeeper/testkit/random";
import * as fc from "fast-check";
import { expect, test } from "vitest";

const PROMPT_MS = 500;

interface Hold {
  readonly grant: CallLine & { answer: { slotToken: string; fence: number } };
  readonly release: CallLine;
}

interface Good {
  readonly facts: HistoryLine;
  /** In the order of their grants. */
  readonly holds: readonly Hold[];
}

/** A good server: `slots` slots, always taken, one bucket, first come, first served. Clients arrive far apart. */
function goodHistory(seed: number): Good {
  const random = new Random(seed);
  const slots = random.int(1, 4);
  const freeAt = Array.from({ length: slots }, () => 10);
  const holds: Hold[] = [];
  const waiters = random.int(slots + 1, 6);
  for (let number = 0; number < random.int(12, 40); number++) {
    freeAt.sort((a, b) => a - b);
    const at = (freeAt[0] ?? 0) + random.int(2, 10);
    // It began to wait when an earlier one was granted.
    const before = holds[number - waiters]?.grant.answeredAt ?? 0;
    const heldMs = random.int(2 * PROMPT_MS, 4 * PROMPT_MS);
    holds.push(hold(number, before + 1, at, at + heldMs, slots));
    freeAt[0] = at + heldMs + 1;
  }
  const fairQueue = { maxSlotPerHost: slots, maxSlotPerIp: 0, maxWaitersPerHost: 0, maxWaitMs: 600_000 };
  const known = { instances: 1, isFresh: true, transitMs: 5, promptMs: PROMPT_MS };
  return { facts: { kind: "facts", at: 0, fairQueue, ...known }, holds };
}

function hold(number: number, sentAt: number, at: number, until: number, limit: number): Hold {
  const slotToken = `slot_${number}`;
  const answer = {
    result: "granted",
    queryToken: `q-${number}`,
    slotToken,
    fence: number + 1,
    leaseMs: 300_000,
    limit,
  };
  const ask = { hostname: "a.example", ipBucket: "b", waitMs: 600_000 };
  return {
    grant: { kind: "call", call: "acquire", sentAt, answeredAt: at, status: 200, ask, answer },
    release: call("release", until, { slotToken }),
  };
}

function call(
  name: CallLine["call"],
  sentAt: number,
  ask: object,
  status = 200,
  answer: object = { result: "ok" },
): CallLine {
  return { kind: "call", call: name, sentAt, answeredAt: sentAt + 1, ask, status, answer };
}

type Mutation = (holds: readonly Hold[], at: number) => readonly (readonly HistoryLine[])[];

const linesOf = ({ grant, release }: Hold): HistoryLine[] => [grant, release];
const answering = ({ grant }: Hold, more: object): CallLine => ({ ...grant, answer: { ...grant.answer, ...more } });
const replacing = (holds: readonly Hold[], at: number, lines: HistoryLine[]) =>
  holds.map((one, index) => (index === at ? lines : linesOf(one)));

/** Each damages a good history at the hold `at`, in a way that one rule must find. */
const MUTATIONS: Record<string, { readonly rule: RuleName; readonly mutate: Mutation }> = {
  "a release is dropped": {
    rule: "HIST1",
    mutate: (holds, at) => replacing(holds, at, [(holds[at] as Hold).grant]),
  },
  "a slot is granted although all are held": {
    rule: "HIST1",
    mutate: (holds, at) => {
      const { grant } = holds[at] as Hold;
      const more = hold(1_000, 0, (grant.answeredAt ?? 0) + PROMPT_MS, 1e6, holds.length);
      return [...holds.map(linesOf), [answering(more, { limit: (grant.answer as { limit?: number }).limit })]];
    },
  },
  "a slot is granted to two sessions": {
    rule: "HIST2",
    mutate: (holds, at) => {
      const { slotToken, fence } = (holds[at - 1] as Hold).grant.answer;
      return replacing(holds, at, [answering(holds[at] as Hold, { slotToken, fence }), (holds[at] as Hold).release]);
    },
  },
  "two fences are swapped": {
    rule: "HIST3",
    mutate: (holds, at) => {
      const [first, last] = [holds[0] as Hold, holds.at(-1) as Hold];
      const swapped = [answering(first, { fence: last.grant.answer.fence }), answering(last, { fence: 1 })];
      expect(at).toBeGreaterThan(0);
      return [[...swapped, first.release, last.release], ...holds.slice(1, -1).map(linesOf)];
    },
  },
  "a released slot is granted again": {
    rule: "HIST4",
    mutate: (holds, at) => {
      const { grant, release } = holds[at] as Hold;
      const again = call("acquire", release.sentAt + 2 * PROMPT_MS, { queryToken: `q-${at}` }, 200, grant.answer);
      return [...holds.map(linesOf), [again]];
    },
  },
  "a renewal is refused": {
    rule: "HIST5",
    mutate: (holds, at) => {
      const { grant } = holds[at] as Hold;
      const { slotToken } = grant.answer;
      return [...holds.map(linesOf), [call("renew", (grant.answeredAt ?? 0) + 10, { slotToken }, 410, {})]];
    },
  },
  "a waiter is never served": {
    rule: "HIST6",
    mutate: (holds, at) => {
      const { grant } = holds[at] as Hold;
      const end = Math.max(...holds.map(({ release }) => release.sentAt)) + 4 * PROMPT_MS;
      const pending = { ...grant, answeredAt: end, answer: { result: "pending", queryToken: `q-${at}` } };
      return replacing(holds, at, [pending]);
    },
  },
  "the first waiter is served last": {
    rule: "HIST7",
    mutate: (holds, at) => {
      const { grant } = holds[at] as Hold;
      const end = (holds.at(-1) as Hold).release.sentAt + 2;
      const late = { ...grant, answeredAt: end, answer: { ...grant.answer, fence: 10_000 } };
      return replacing(holds, at, [late, call("release", end + 10, { slotToken: grant.answer.slotToken })]);
    },
  },
};

/**
 * Whether damage shows: the hold has a session before it; after its end all slots are in use at some time; and sessions
 * that began later than its own were granted.
 */
function isFit(holds: readonly Hold[], at: number): boolean {
  const { grant, release } = holds[at] as Hold;
  const inUse = (when: number) =>
    holds.filter((one) => (one.grant.answeredAt ?? 0) <= when && one.release.sentAt > when).length;
  const slots = Math.max(...holds.map((one) => inUse(one.grant.answeredAt ?? 0)));
  const isFollowed = holds.some((one) => one.grant.sentAt > grant.sentAt + 2 * PROMPT_MS);
  const later = holds.map((one) => one.grant.answeredAt ?? 0).filter((when) => when > release.sentAt);
  return at > 0 && isFollowed && later.some((when) => inUse(when) === slots);
}

const seeds = fc.integer({ min: 1, max: 1_000_000 });

test("a good history breaks no rule, in any order of its lines", () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const { facts, holds } = goodHistory(seed);
      const lines = [facts, ...holds.flatMap(linesOf)];
      const random = new Random(seed);
      const mixed = lines.map((line) => ({ line, key: random.next() })).sort((a, b) => a.key - b.key);
      expect(judgeHistory(lines).violations).toEqual([]);
      expect(judgeHistory(mixed.map(({ line }) => line)).violations).toEqual([]);
    }),
  );
});

test.each(Object.entries(MUTATIONS))("%s: found", (_, { rule, mutate }) => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const { facts, holds } = goodHistory(seed);
      const fit = [...holds.keys()].filter((index) => isFit(holds, index));
      fc.pre(fit.length > 0);
      const at = new Random(seed).pick(fit);
      const lines = [facts, ...mutate(holds, at).flat()];
      expect(judgeHistory(lines).violations.map((violation) => violation.rule)).toContain(rule);
    }),
  );
});
