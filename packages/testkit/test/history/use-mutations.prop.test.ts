/** Damage to histories of hosts with cooldown, minimum hold, spacing and breaker, and changes that clients cannot see. */
import { type CallLine, type HistoryLine, judgeHistory, type RuleName } from "@slotkeeper/testkit/history";
import { Random } from "@slotkeeper/testkit/random";
import * as fc from "fast-check";
import { expect, test } from "vitest";

const COOL_MS = 1_000;
const TRANSIT_MS = 5;
const HOLD_MS = 400;
const OPEN_MS = 2_000;

interface Turn {
  readonly grant: CallLine;
  readonly release: CallLine;
}

function turn(number: number, sentAt: number, at: number, until: number, status: number): Turn {
  const ask = { hostname: "a.example", ipBucket: "b", waitMs: 600_000 };
  const slotToken = `slot_${number}`;
  const granted = {
    result: "granted",
    queryToken: `q-${number}`,
    slotToken,
    fence: number,
    leaseMs: 300_000,
    limit: 1,
  };
  const given = { slotToken, status, hitUpstreamAtMs: at, now: until };
  return {
    grant: { kind: "call", call: "acquire", sentAt, answeredAt: at, status: 200, ask, answer: granted },
    release: {
      kind: "call",
      call: "release",
      sentAt: until,
      answeredAt: until + 1,
      ask: given,
      status: 200,
      answer: {},
    },
  };
}

interface Good {
  readonly facts: HistoryLine;
  readonly turns: readonly Turn[];
  /** A session that was throttled, and the slot of the first probe after it. */
  readonly throttled: CallLine;
  readonly probe: Turn;
}

/** One slot that a bucket uses again and again, then errors that open the breaker, and a probe. */
function goodHistory(seed: number): Good {
  const random = new Random(seed);
  const turns: Turn[] = [];
  let at = 100;
  const count = random.int(4, 12);
  for (let number = 1; number <= count; number++) {
    const until = at + random.int(1, 2 * HOLD_MS);
    const isError = number > count - 2;
    turns.push(turn(number, at - random.int(5, 90), at, until, isError ? 503 : 200));
    at = Math.max(until + COOL_MS, at + HOLD_MS) + random.int(2, 500);
  }
  const last = (turns.at(-1) as Turn).release.sentAt;
  const throttled: CallLine = {
    ...turn(count + 1, last + 5, last + 10, 0, 200).grant,
    answer: { result: "throttled", throttleCode: 503, throttleRetryAfter: 2 },
  };
  const from = last + OPEN_MS + random.int(120, 500);
  const probe = turn(count + 2, last + 20, from, from + random.int(1, 500), 200);
  const breaker = { openSeconds: OPEN_MS / 1000, consecutiveErrors: 2, minSamples: 0, fastMinSamples: 0 };
  const limits = { maxSlotPerHost: 1, maxSlotPerIp: 1, maxWaitersPerHost: 0, maxWaitMs: 600_000 };
  const fairQueue = { ...limits, ipCooldownSeconds: COOL_MS / 1000, minSlotHoldMs: HOLD_MS, breaker };
  const facts = {
    kind: "facts",
    at: 0,
    fairQueue,
    instances: 1,
    isFresh: true,
    transitMs: TRANSIT_MS,
    promptMs: 1e6,
  } as const;
  return { facts, turns, throttled, probe };
}

const linesOf = ({ facts, turns, throttled, probe }: Good): HistoryLine[] => [
  facts,
  ...[...turns, probe].flatMap(({ grant, release }) => [grant, release]),
  throttled,
];
const arriving = ({ grant, release }: Turn, at: number): Turn => ({
  grant: { ...grant, sentAt: at - 4, answeredAt: at },
  release,
});
const replacing = (good: Good, index: number, by: Turn): Good => ({
  ...good,
  turns: good.turns.map((one, at) => (at === index ? by : one)),
});
const without = (good: Good, ...keys: string[]): Good => {
  const { fairQueue = {}, ...facts } = good.facts as { fairQueue?: object };
  const kept = Object.entries(fairQueue).filter(([key]) => !keys.includes(key));
  return { ...good, facts: { ...facts, fairQueue: Object.fromEntries(kept) } as HistoryLine };
};

type Mutation = (good: Good, index: number, random: Random) => Good;

/** Each damages a good history at the turn `index`, in a way that one rule must find. */
const MUTATIONS: Record<string, { readonly rule: RuleName; readonly mutate: Mutation }> = {
  "a bucket gets its next slot within its cooldown": {
    rule: "HIST10",
    mutate: (good, index, random) => {
      const before = good.turns[index - 1] as Turn;
      const at = before.release.sentAt + random.int(1, COOL_MS - 2 * TRANSIT_MS);
      return replacing(good, index, arriving(good.turns[index] as Turn, at));
    },
  },
  "a slot is granted within the minimum hold of the one before": {
    rule: "HIST11",
    mutate: (good, index, random) => {
      const before = good.turns[index - 1] as Turn;
      const grantedAt = before.grant.answeredAt ?? 0;
      const until = grantedAt + random.int(1, HOLD_MS / 2);
      const ask = { ...before.release.ask, hitUpstreamAtMs: grantedAt, now: until };
      const short = { ...before, release: { ...before.release, sentAt: until, answeredAt: until + 1, ask } };
      const early = arriving(
        good.turns[index] as Turn,
        random.int(until + TRANSIT_MS, grantedAt + HOLD_MS - 2 * TRANSIT_MS),
      );
      return without(replacing(replacing(good, index - 1, short), index, early), "ipCooldownSeconds");
    },
  },
  "an open breaker lets a session through": {
    rule: "HIST12",
    mutate: (good, _, random) => {
      const openedAt = (good.turns.at(-2) as Turn).release.sentAt;
      const at = (good.throttled.answeredAt ?? 0) + random.int(5, 500);
      expect(at).toBeGreaterThan(openedAt);
      return { ...without(good, "ipCooldownSeconds", "minSlotHoldMs"), probe: arriving(good.probe, at) };
    },
  },
  "a half-open breaker lets a second probe through": {
    rule: "HIST13",
    mutate: (good, _, random) => {
      const { grant, release } = good.probe;
      const until = release.sentAt + 1_000;
      const late = { grant, release: { ...release, sentAt: until, answeredAt: until + 1 } };
      const more = arriving(turn(1_000, 0, 0, until, 200), (grant.answeredAt ?? 0) + random.int(5, 500));
      const two = without(good, "ipCooldownSeconds", "minSlotHoldMs", "maxSlotPerHost", "maxSlotPerIp");
      return { ...two, turns: [...good.turns, more], probe: late };
    },
  },
};

/** To clients these histories look like good ones, so they break no rule. */
const UNSEEN: Record<string, (good: Good, index: number, random: Random) => HistoryLine[]> = {
  "the lines are in another order": (good, _, random) =>
    linesOf(good)
      .map((line) => ({ line, key: random.next() }))
      .sort((a, b) => a.key - b.key)
      .map(({ line }) => line),
  "the answer to a release is lost": (good, index) => {
    const { grant, release } = good.turns[index] as Turn;
    const { answeredAt: _, status: __, answer: ___, ...lost } = release;
    return linesOf(replacing(good, index, { grant, release: { ...lost, gaveUpAt: release.sentAt + 50 } }));
  },
  "a release is sent twice": (good, index, random) => {
    const { release } = good.turns[index] as Turn;
    const again = release.sentAt + random.int(1, 50);
    return [...linesOf(good), { ...release, sentAt: again, answeredAt: again + 1 }];
  },
  "an answer arrives late": (good, index, random) => {
    const { grant, release } = good.turns[index] as Turn;
    const late = (grant.answeredAt ?? 0) + random.int(0, Math.max(0, release.sentAt - (grant.answeredAt ?? 0) - 1));
    return linesOf(replacing(good, index, { grant: { ...grant, answeredAt: late }, release }));
  },
  "a session asked earlier": (good, index, random) => {
    const { grant, release } = good.turns[index] as Turn;
    return linesOf(replacing(good, index, { grant: { ...grant, sentAt: random.int(0, grant.sentAt) }, release }));
  },
};

const seeds = fc.integer({ min: 1, max: 1_000_000 });
const NEW_RULES: readonly RuleName[] = ["HIST10", "HIST11", "HIST12", "HIST13"];

test("a good history breaks no rule, and every rule about use judges it", () => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const { violations, rules } = judgeHistory(linesOf(goodHistory(seed)));
      expect(violations).toEqual([]);
      const judged = rules.filter((rule) => rule.judged > 0).map(({ rule }) => rule);
      expect(judged).toEqual(expect.arrayContaining([...NEW_RULES]));
    }),
  );
});

test.each(Object.entries(MUTATIONS))("%s: found", (_, { rule, mutate }) => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const random = new Random(seed);
      const good = goodHistory(seed);
      const damaged = mutate(good, random.int(1, good.turns.length - 3), random);
      expect(judgeHistory(linesOf(damaged)).violations.map((violation) => violation.rule)).toContain(rule);
    }),
  );
});

test.each(Object.entries(UNSEEN))("%s: no rule is broken", (_, change) => {
  fc.assert(
    fc.property(seeds, (seed) => {
      const random = new Random(seed);
      const good = goodHistory(seed);
      expect(judgeHistory(change(good, random.int(0, good.turns.length - 3), random)).violations).toEqual([]);
    }),
  );
});
