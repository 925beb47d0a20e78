import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { Random } from "../random/random.ts";
import { randomClasses } from "../reference/random-classes.ts";

/** What the seed decides before the run. */
export interface WorldPlan {
  readonly config: FairQueueConfig;
  readonly hosts: readonly string[];
  readonly buckets: readonly string[];
  readonly instances: number;
  readonly clients: number;
  readonly durationMs: number;
  readonly loss: number;
  readonly duplication: number;
  readonly latencyMs: number;
  /** Whether each poll goes to any instance, or all calls of a client go to one while it answers. */
  readonly routing: "any" | "sticky";
  /**
   * `calm`: answers at once and never fails. `brisk`: answers within milliseconds and loses notifications. `rough`:
   * also fails and stalls.
   */
  readonly store: "calm" | "brisk" | "rough";
  readonly storeErrors: number;
  readonly storeStalls: number;
  readonly lostPushes: number;
  readonly latePushes: number;
  /** By how much the clocks of instances are wrong from the start, in milliseconds. */
  readonly skewMs: number;
  readonly crashes: number;
  readonly pauses: number;
  readonly failovers: number;
  readonly sweeps: number;
  readonly instanceJumps: number;
  readonly storeJumps: number;
  readonly upstreamErrors: number;
  readonly clientCrashes: number;
  readonly cancels: number;
  /** The part of requests that need several slots. */
  readonly wide: number;
}

export function planWorld(random: Random, ofKeys: Random, ofClasses: Random): WorldPlan {
  const store = random.pick(["calm", "brisk", "rough"] as const);
  const isQuiet = random.chance(0.2);
  const upTo = (most: number) => (isQuiet ? 0 : random.next() * most);
  const some = (most: number) => (isQuiet ? 0 : random.int(0, most));
  const plan = {
    config: { ...planConfig(random), ...(ofKeys.chance(0.25) ? { keys: planKeys(ofKeys) } : {}) },
    hosts: Array.from({ length: random.int(1, 2) }, (_, index) => `host-${index}`),
    buckets: ["", "a", "b", "c", "d"].slice(0, random.int(2, 5)),
    instances: random.pick([1, 2, 2, 3, 4]),
    clients: random.int(3, 14),
    durationMs: random.int(8, 25) * 1000,
    loss: upTo(0.15),
    duplication: upTo(0.15),
    latencyMs: random.pick([1, 20, 80]),
    routing: random.pick(["any", "sticky"] as const),
    store,
    storeErrors: store === "rough" ? upTo(0.2) : 0,
    storeStalls: store === "rough" ? upTo(0.05) : 0,
    lostPushes: store === "calm" ? 0 : upTo(0.3),
    latePushes: store === "calm" ? 0 : upTo(0.3),
    skewMs: random.pick([0, 50, 10_000]),
    crashes: some(3),
    pauses: some(3),
    failovers: random.chance(0.25) ? some(2) : 0,
    sweeps: some(2),
    instanceJumps: some(2),
    storeJumps: random.chance(0.2) ? random.int(1, 2) : 0,
    upstreamErrors: random.pick([0, 0, 0.1, 0.5]),
    clientCrashes: upTo(0.1),
    cancels: upTo(0.1),
    wide: random.pick([0, 0, 0.2, 0.6]),
  };
  const config = withMoreBudgets(plan);
  const classes = ofClasses.chance(0.3) ? randomClasses(config, ofClasses) : {};
  return { ...plan, config: Object.keys(classes).length > 0 ? { ...config, classes } : config };
}

/** By numbers that are drawn already: another draw would change the histories of all seeds. */
function withMoreBudgets({ config, clients }: Pick<WorldPlan, "config" | "clients">): FairQueueConfig {
  const { tokens } = config.budgets ?? {};
  if (tokens === undefined) return config;
  const order = clients % 3 === 0 ? "budget:tokens" : config.order;
  const burst = clients % 2 === 0 ? 2 * tokens.limit : tokens.limit;
  return { ...config, ...(order && { order }), budgets: { tokens: { ...tokens, burst } } };
}

/** Some clients send `tenant`, and all of them belong to one of three. */
function planKeys(random: Random): NonNullable<FairQueueConfig["keys"]> {
  const budgets = random.chance(0.3) ? { budgets: planBudgets(random) } : {};
  const own = random.chance(0.3) ? { for: { t1: { slots: random.int(1, 3) } } } : {};
  const tenant = { slots: random.int(1, 3), ...budgets, ...own };
  const hasUser = random.chance(0.5);
  const required = random.chance(0.2) ? { required: true } : {};
  const user = { slots: 1, ...(random.chance(0.3) ? { shadow: true } : {}) };
  return { ...(hasUser ? { user } : {}), tenant: { ...tenant, ...required } };
}

function planBudgets(random: Random): NonNullable<FairQueueConfig["budgets"]> {
  return { tokens: { limit: random.pick([5, 20]), perSeconds: random.pick([1, 5]), default: random.pick([1, 3]) } };
}

function planConfig(random: Random): FairQueueConfig {
  const minSlotHoldMs = random.pick([0, 0, 200]);
  return {
    maxSlotPerHost: random.int(1, 4),
    maxSlotPerIp: random.pick([0, 1, 1, 2]),
    maxWaitersPerHost: random.pick([0, 2, 4, 50]),
    maxWaitersPerIp: random.pick([0, 0, 2]),
    maxWaitMs: random.pick([3_000, 8_000, 20_000]),
    pollIntervalMs: random.pick([100, 500]),
    pollWindowMs: random.pick([300, 2_000, 6_000]),
    collectMs: random.pick([300, 1_000]),
    sessionIdleSeconds: random.pick([2, 10]),
    zombieTimeoutSeconds: random.pick([2, 5]),
    maxHoldSeconds: random.pick([4, 60]),
    ipCooldownSeconds: random.pick([0, 0, 0, 1]),
    minSlotHoldMs,
    defaultGrantedCleanupDelay: random.pick([0, 1, 5]),
    order: random.pick(["slot-seconds", "slot-seconds", "fifo"]),
    ...(random.chance(0.25) ? { budgets: planBudgets(random) } : {}),
    weightedScheduler: {
      enabled: random.chance(0.4),
      hotPendingMin: 2,
      hotPendingFactor: 0.5,
      hotAvgWaitMs: 200,
      coldAvgWaitMs: 20,
    },
    breaker: { windowSeconds: 5, openSeconds: random.pick([1, 3]), consecutiveErrors: 3 },
  };
}
