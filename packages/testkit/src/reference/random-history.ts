import type { FairQueueConfig } from "@slotkeeper/protocol";
import { Random } from "../random/random.ts";
import { withClasses } from "./random-classes.ts";

/** What one seed decides: the limits, and what happens at each step. It holds no answers, so any part can be left out. */
export interface History {
  readonly seed: number;
  /** The configuration, and one that is loaded later. */
  readonly configs: readonly [FairQueueConfig, FairQueueConfig];
  readonly isSemaphore: boolean;
  readonly mostEnds: number;
  /** The largest width of a session. */
  readonly mostWidth: number;
  /** Sessions may arrive at exactly the same time. */
  readonly hasTies: boolean;
  readonly steps: readonly Step[];
}

/** One instance decides on what it was asked in the last milliseconds. */
export interface Step {
  readonly afterMs: number;
  readonly instance: string;
  /** Which of the two configurations the instance has. */
  readonly config: 0 | 1;
  readonly hostname: string | undefined;
  /** Sessions with an open poll at the instance, and how much longer than `collectMs` others have been away. */
  readonly polled: readonly string[];
  readonly away: Readonly<Record<string, number>>;
  /** Sessions whose client has a token. */
  readonly sent: readonly string[];
  /** How long ago each instance was seen. */
  readonly seenMs: Readonly<Record<string, number>>;
  readonly asks: readonly Ask[];
}

export interface Ask {
  readonly kind: AskKind;
  readonly session: string;
  readonly bucket: string;
  /** What the kind makes of it: a time, a status, a limit. */
  readonly number: number;
  readonly isOdd: boolean;
}

const ASKS = {
  arrive: 30,
  again: 5,
  extend: 2,
  release: 16,
  late: 3,
  renew: 4,
  timeout: 4,
  cancel: 5,
  away: 5,
  back: 3,
  return: 4,
  report: 3,
  breaker: 1,
  limits: 1,
  pause: 1,
  dead: 2,
  revoke: 1,
  unspace: 1,
  forget: 1,
} as const;
type AskKind = keyof typeof ASKS;
const ASK_KINDS = Object.entries(ASKS).flatMap(([kind, share]) => Array<AskKind>(share).fill(kind as AskKind));

const INSTANCES = ["i0", "i1", "i2"];
const BUCKETS = ["", "a", "b", "c", "d"];
const TIMES = [0, 0, 1, 5, 5, 20, 20, 60, 60, 150, 300, 300, 1_000];
const LONG_TIMES = [5_000, 11_000, 700_000, 3_700_000];
const STATUSES = [200, 204, 304, 404, 429, 500, 503, 503];

export function randomHistory(seed: number): History {
  const random = new Random(seed);
  const config = randomConfig(random);
  const sessions = Array.from({ length: random.int(3, 14) }, (_, index) => `s${index}`);
  const buckets = BUCKETS.slice(0, random.int(2, BUCKETS.length));
  const instances = INSTANCES.slice(0, random.int(1, INSTANCES.length));
  const calm = random.pick([0, 0.5, 0.9]);
  const isSemaphore = random.chance(0.1);
  const steps = Array.from({ length: random.int(8, 40) }, () =>
    randomStep(random, { sessions, buckets, instances, calm, isSemaphore }),
  );
  const { collectMs, weightedScheduler } = config as Required<FairQueueConfig>;
  // Drawn from other sources, so that the seeds that were found so far are the same histories, apart from shadows and keys.
  const [more, ofKeys, tried] = [seed ^ 0x5eed, seed + 1_000_003, seed + 2_000_003].map((one) => new Random(one)) as [
    Random,
    Random,
    Random,
  ];
  const other = { ...randomConfig(random), collectMs, weightedScheduler };
  const hasKeys = ofKeys.chance(0.4);
  const added = (one: FairQueueConfig) =>
    hasKeys ? withTried(withKeys(varied(one, more), ofKeys), tried) : varied(one, more);
  // By this number the seeds of known bugs have no classes: they are the same histories.
  const ofClasses = new Random(seed ^ 0xb99a0);
  const hasClasses = ofClasses.chance(0.35);
  const classed = (one: FairQueueConfig) => (hasClasses ? withClasses(one, ofClasses) : one);
  const configs = [classed(added(config)), classed(added(other))] as const;
  return {
    seed,
    configs,
    isSemaphore,
    mostEnds: random.pick([1, 3, 1_000, 1_000]),
    mostWidth: random.pick([1, 1, 2, 4]),
    hasTies: random.chance(0.3),
    steps: hasClasses ? steps.map((step) => crowded(step, { sessions, buckets }, ofClasses)) : steps,
  };
}

/** As long as four histories, with more sessions that wait: what adds up over many grants shows in it. */
export function longHistory(seed: number): History {
  const history = randomHistory(seed);
  const parts = [history, ...LATER.map((later) => randomHistory(seed + later))];
  const cast = { sessions: Array.from({ length: 14 }, (_, index) => `s${index}`), buckets: BUCKETS };
  const random = new Random(seed ^ 0x407);
  return { ...history, steps: parts.flatMap(({ steps }) => steps.map((step) => crowded(step, cast, random))) };
}

/** The seeds of the parts that follow. */
const LATER = [1_000_000, 2_000_000, 3_000_000];

/** A long history at a host where the weighted scheduler chooses whenever sessions wait. In others it rarely does. */
export function hotHistory(seed: number): History {
  const { configs, ...history } = longHistory(seed);
  return { ...history, configs: [hot(configs[0], seed), hot(configs[1], seed)], mostWidth: 1 };
}

/** Budgets, keys and classes would turn the scheduler off. Half of the hosts have the defaults for waits. */
function hot(
  { budgets: _budgets, keys: _keys, order: _order, ...config }: FairQueueConfig,
  seed: number,
): FairQueueConfig {
  const heat =
    seed % 2 === 0
      ? { ...config.weightedScheduler, hotPendingMin: 1, hotPendingFactor: 0.1, hotAvgWaitMs: 2, coldAvgWaitMs: 1 }
      : { hotPendingMin: 2, hotPendingFactor: 2 };
  const { weights = {} } = config.hosts?.["*"] ?? {};
  const limits = { maxSlotPerHost: 2, maxSlotPerIp: 1, maxWaitersPerHost: 50, maxWaitMs: 20_000, pollIntervalMs: 20 };
  return { ...config, ...limits, hosts: { "*": { weights } }, weightedScheduler: { ...heat, enabled: true } };
}

/** More sessions arrive: classes matter only while several of them wait. */
function crowded(step: Step, { sessions, buckets }: Pick<Cast, "sessions" | "buckets">, random: Random): Step {
  const arrivals = Array.from({ length: random.int(0, 2) }, (): Ask => {
    const [session, bucket] = [random.pick(sessions), random.pick(buckets)];
    return { kind: "arrive", session, bucket, number: random.int(0, 1_000), isOdd: false };
  });
  return { ...step, asks: [...arrivals, ...step.asks] };
}

interface Cast {
  readonly sessions: readonly string[];
  readonly buckets: readonly string[];
  readonly instances: readonly string[];
  /** How often clients do what clients should do. */
  readonly calm: number;
  readonly isSemaphore: boolean;
}

function randomStep(random: Random, cast: Cast): Step {
  const { sessions, instances, calm } = cast;
  const isCalm = random.chance(calm);
  const polled = sessions.filter(() => random.chance(isCalm ? 0.95 : 0.5));
  const absent = sessions.filter((session) => !polled.includes(session) && random.chance(0.3));
  const step = {
    afterMs: random.chance(0.02) ? random.pick(LONG_TIMES) : random.pick(TIMES),
    instance: random.pick(instances),
    config: random.chance(0.05) ? 1 : 0,
    hostname: random.chance(0.1) ? "h.test" : undefined,
    polled,
    away: Object.fromEntries(absent.map((session) => [session, random.pick([0, 10, 400])])),
    sent: sessions.filter(() => random.chance(0.5)),
    seenMs: Object.fromEntries(
      instances.filter(() => random.chance(0.6)).map((one) => [one, random.pick([0, 40, 2_000])]),
    ),
  } as const;
  // Decisions used to be given a random number. Without it, the seeds that were found so far would be other histories.
  random.next();
  return { ...step, asks: Array.from({ length: random.pick([0, 1, 1, 2, 3, 6]) }, () => randomAsk(random, cast)) };
}

function randomAsk(random: Random, { sessions, buckets }: Cast): Ask {
  return {
    kind: random.pick(ASK_KINDS),
    session: random.pick(sessions),
    bucket: random.pick(buckets),
    number: random.int(0, 1_000),
    isOdd: random.chance(0.2),
  };
}

export function statusOf({ number }: Ask): number {
  return STATUSES[number % STATUSES.length] as number;
}

function randomBudgets(random: Random): NonNullable<FairQueueConfig["budgets"]> {
  const tokens = { limit: random.pick([2, 5, 10]), perSeconds: random.pick([0.1, 1, 5]) };
  const requests = { limit: random.pick([1, 3]), perSeconds: random.pick([0.05, 0.5]) };
  return {
    tokens: {
      ...tokens,
      ...(random.chance(0.5) ? { burst: random.pick([3, 12]) } : {}),
      default: random.pick([0, 1, 2]),
    },
    ...(random.chance(0.5) ? { requests } : {}),
  };
}

function withKeys(config: FairQueueConfig, random: Random): FairQueueConfig {
  const budgets = () => (random.chance(0.4) ? withShadows({ budgets: randomBudgets(random) }, random) : {});
  const slots = () => (random.chance(0.8) ? { slots: random.int(1, 3) } : {});
  const own = random.chance(0.3) ? { for: { t1: slots() } } : {};
  const keys = [
    ["user", { ...slots(), ...budgets() }],
    ["tenant", { ...slots(), ...budgets(), ...own, required: random.chance(0.2) }],
    ["bucket", budgets()],
  ] as const;
  const chosen = keys.filter(() => random.chance(0.7));
  return { ...config, keys: Object.fromEntries(random.chance(0.7) ? chosen : chosen.toReversed()) };
}

/** Some keys are in shadow mode. Their budgets are, too, unless they say otherwise. */
function withTried({ keys = {}, ...config }: FairQueueConfig, random: Random): FairQueueConfig {
  const entries = Object.entries(keys).map(([name, key]) => {
    if (!random.chance(0.3)) return [name, key];
    const isSilent = random.chance(0.5);
    const budgets = Object.entries(key.budgets ?? {}).map(([budget, { shadow, ...limits }]) => [
      budget,
      isSilent ? limits : { ...limits, shadow },
    ]);
    return [name, { ...key, budgets: Object.fromEntries(budgets), shadow: true }];
  });
  return { ...config, keys: Object.fromEntries(entries) };
}

/** Some hosts are ordered by a budget. */
function varied(config: FairQueueConfig, random: Random): FairQueueConfig {
  const isOrdered = random.chance(0.4) && config.budgets !== undefined;
  return { ...withShadows(config, random), ...(isOrdered ? { order: "budget:tokens" } : {}) };
}

/** Some budgets are in shadow mode. */
function withShadows({ budgets, ...config }: FairQueueConfig, random: Random): FairQueueConfig {
  if (budgets === undefined) return config;
  const shadow = random.pick([[], [], ["tokens"], ["requests"], ["tokens", "requests"]]);
  const entries = Object.entries(budgets).map(([name, budget]) => [name, { ...budget, shadow: shadow.includes(name) }]);
  return { ...config, budgets: Object.fromEntries(entries) };
}

function randomConfig(random: Random): FairQueueConfig {
  return {
    maxSlotPerHost: random.int(1, 6),
    maxSlotPerIp: random.pick([-1, -1, 1, 1, 2, 4]),
    maxWaitersPerHost: random.pick([0, 2, 4, 50]),
    maxWaitersPerIp: random.pick([0, 0, 2]),
    maxWaitMs: random.pick([1_000, 4_000, 20_000]),
    pollIntervalMs: random.pick([20, 100]),
    collectMs: random.pick([30, 100, 300]),
    sessionIdleSeconds: random.pick([1, 10]),
    zombieTimeoutSeconds: random.pick([0.3, 2]),
    maxHoldSeconds: random.pick([0.5, 60]),
    ipCooldownSeconds: random.pick([0, 0, 0.2]),
    minSlotHoldMs: random.pick([0, 0, 30]),
    ...(random.chance(0.5) ? { smoothReleaseIntervalMs: random.pick([0, 15]) } : {}),
    defaultGrantedCleanupDelay: random.pick([0, 0.1, 5]),
    order: random.pick(["slot-seconds", "slot-seconds", "fifo"]),
    ...(random.chance(0.4) ? { budgets: randomBudgets(random) } : {}),
    hosts: {
      "*": { weights: Object.fromEntries(BUCKETS.slice(1).map((bucket) => [bucket, random.pick([1, 1, 1, 2, 3])])) },
    },
    weightedScheduler: {
      enabled: random.chance(0.4),
      hotPendingMin: 2,
      hotPendingFactor: 0.5,
      hotAvgWaitMs: 40,
      coldAvgWaitMs: 5,
      ...(random.chance(0.5) ? { maxProbesPerCycle: random.int(1, 3) } : {}),
    },
    breaker: {
      windowSeconds: 2,
      openSeconds: random.pick([0.1, 1]),
      consecutiveErrors: random.pick([0, 2, 3]),
      minSamples: random.pick([0, 6]),
      fastMinSamples: random.pick([0, 3]),
      halfOpenProbes: random.pick([1, 1, 2]),
    },
  };
}
