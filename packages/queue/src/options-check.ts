import type { FairQueueConfig } from "@slotkeeper/protocol";

/** Refuses a configuration with unknown keys, wrong types or impossible values: all problems at once, by path. */

type Rule = (value: unknown) => string | undefined;
type Rules = { readonly [key: string]: Rule | Rules };

const atLeast =
  (min: number, isWhole = false): Rule =>
  (value) =>
    typeof value === "number" && value >= min && Number.isFinite(value) && (!isWhole || Number.isInteger(value))
      ? undefined
      : `a ${isWhole ? "whole " : ""}number from ${min} up`;
const finite: Rule = (value) => (Number.isFinite(value) ? undefined : "a finite number");
const whole: Rule = (value) => (Number.isInteger(value) ? undefined : "a whole number");
const flag: Rule = (value) => (typeof value === "boolean" ? undefined : "true or false");
const above0: Rule = (value) => (Number.isFinite(value) && (value as number) > 0 ? undefined : "a number above 0");
const percent: Rule = (value) =>
  above0(value) === undefined && (value as number) <= 100 ? undefined : "a number above 0, at most 100";
const order: Rule = (value) => (value === "slot-seconds" || value === "fifo" ? undefined : '"slot-seconds" or "fifo"');
const codes: Rule = (value) =>
  Array.isArray(value) && value.every((code) => Number.isInteger(code) && code >= 100 && code <= 599)
    ? undefined
    : "a list of HTTP status codes";
const weights: Rule = (value) =>
  isRecord(value) && Object.values(value).every((weight) => above0(weight) === undefined)
    ? undefined
    : "an object of numbers above 0";

const BREAKER: Rules = {
  windowSeconds: above0,
  protectHttpCodes: codes,
  errorRatioPercent: finite,
  minSamples: whole,
  fastErrorRatioPercent: finite,
  fastMinSamples: whole,
  consecutiveErrors: whole,
  openSeconds: above0,
  halfOpenProbes: atLeast(1, true),
};

const HOST_LIMITS: Rules = {
  minSlotHoldMs: atLeast(0),
  smoothReleaseIntervalMs: finite,
  maxSlotPerHost: atLeast(1, true),
  maxSlotPerIp: whole,
  maxWaitersPerIp: whole,
  maxWaitersPerHost: whole,
  zombieTimeoutSeconds: above0,
  maxHoldSeconds: above0,
  ipCooldownSeconds: atLeast(0),
  order,
  breaker: BREAKER,
};

const HOST: Rules = { ...HOST_LIMITS, weights };

const FAIR_QUEUE: Rules = {
  ...HOST_LIMITS,
  maxWaitMs: above0,
  pollIntervalMs: atLeast(1),
  pollWindowMs: atLeast(0),
  sessionIdleSeconds: above0,
  collectMs: above0,
  globalMaxWaiters: whole,
  maxSessionsPerBucketPercent: percent,
  defaultGrantedCleanupDelay: atLeast(0),
  cleanup: { enabled: flag, intervalSeconds: above0, queueDepthZombieTtlSeconds: above0 },
  weightedScheduler: {
    enabled: flag,
    hotPendingFactor: above0,
    hotPendingMin: atLeast(0),
    coldAvgWaitMs: atLeast(0),
    hotAvgWaitMs: atLeast(0),
    maxProbesPerCycle: atLeast(1, true),
    baseWeight: atLeast(0),
    weightPerWait: atLeast(0),
  },
};

export function checkConfig(config: FairQueueConfig): void {
  const problems: string[] = [];
  const { hosts, ...flat } = config as Record<string, unknown>;
  check(flat, FAIR_QUEUE, "fairQueue", problems);
  if (isRecord(hosts)) {
    for (const [host, limits] of Object.entries(hosts)) check(limits, HOST, `fairQueue.hosts["${host}"]`, problems);
  } else if (hosts !== undefined && hosts !== null) {
    problems.push(`Expected \`fairQueue.hosts\` to be an object, got ${JSON.stringify(hosts)}`);
  }
  checkScheduler(config, problems);
  if (problems.length > 0) throw new RangeError(problems.join("\n"));
}

function check(value: unknown, rules: Rules, path: string, problems: string[]): void {
  if (!isRecord(value)) {
    problems.push(`Expected \`${path}\` to be an object, got ${JSON.stringify(value)}`);
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
    if (rule === undefined) problems.push(`Unknown key \`${path}.${key}\``);
    else if (item !== undefined && item !== null) checkItem(item, rule, `${path}.${key}`, problems);
  }
}

function checkItem(item: unknown, rule: Rule | Rules, path: string, problems: string[]): void {
  if (typeof rule !== "function") {
    check(item, rule, path, problems);
    return;
  }
  const expected = rule(item);
  if (expected !== undefined) problems.push(`Expected \`${path}\` to be ${expected}, got ${JSON.stringify(item)}`);
}

/** Thresholds that cross each other would make a host hot and cold at once. */
function checkScheduler({ weightedScheduler: scheduler }: FairQueueConfig, problems: string[]): void {
  const { coldAvgWaitMs: cold, hotAvgWaitMs: hot } = isRecord(scheduler) ? scheduler : {};
  if (typeof cold === "number" && typeof hot === "number" && cold >= hot) {
    problems.push(
      `Expected \`fairQueue.weightedScheduler.hotAvgWaitMs\` to be above \`coldAvgWaitMs\` (${cold}), got ${hot}`,
    );
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
