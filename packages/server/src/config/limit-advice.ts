import { BUCKET_KEY, type HostConfig, isEnforced, SEMAPHORE_PREFIX, type ServiceConfig } from "@slotkeeper/protocol";
import { constraintsOf, isConstrained, type QueueOptions, resolveOptions } from "@slotkeeper/queue";
import { fieldName } from "../words/validator.ts";
import { type Advice, conflictIf } from "./advice.ts";
import { classAdvice, type Level } from "./class-advice.ts";

/**
 * Limits that are valid alone, but of which one makes another useless. `cross-rules.ts` has the combinations that
 * cannot work.
 */
export function limitAdvice(config: ServiceConfig): Advice[] {
  const { rpc: _names, ...fairQueue } = config.fairQueue ?? {};
  const options = resolveOptions(fairQueue);
  const { defaults, hosts } = options;
  const levels: Level[] = [
    { path: "fairQueue", own: defaults, all: defaults },
    ...Object.entries(hosts)
      .filter(([host]) => !host.startsWith(SEMAPHORE_PREFIX))
      .map(([host, own]) => ({ path: fieldName(["fairQueue", "hosts", host]), own, all: { ...defaults, ...own } })),
  ];
  return [
    ...ofService(config, options),
    ...levels.flatMap((level) => hostAdvice(level, options)),
    ...levels.flatMap(classAdvice),
  ];
}

function ofService({ limits }: ServiceConfig, options: QueueOptions): Advice[] {
  const { maxWaitMs, pollIntervalMs, idleMs, collectMs, maxSessions } = options;
  const { coldAvgWaitMs: cold, hotAvgWaitMs: hot } = options.scheduler;
  const { heldPolls = 0 } = limits ?? {};
  return [
    ...conflictIf(
      maxWaitMs < pollIntervalMs,
      `\`fairQueue.maxWaitMs\` (${maxWaitMs}) is below \`pollIntervalMs\` (${pollIntervalMs})`,
      "a session ends before the service repeats a failed call to the store, so one failure becomes a timeout",
      "Raise `maxWaitMs` or lower `pollIntervalMs`.",
    ),
    ...conflictIf(
      cold !== undefined && hot !== undefined && hot <= cold,
      `\`fairQueue.weightedScheduler.hotAvgWaitMs\` (${hot}) is not above \`coldAvgWaitMs\` (${cold})`,
      "a host with an average wait between the two counts as cold",
      "Raise `hotAvgWaitMs` or lower `coldAvgWaitMs`.",
    ),
    ...conflictIf(
      idleMs < collectMs,
      `\`fairQueue.sessionIdleSeconds\` (${idleMs / 1000}) is below \`collectMs\` (${collectMs})`,
      "a session between two polls ends while a slot is still kept for it",
      "Raise `sessionIdleSeconds` or lower `collectMs`.",
    ),
    ...conflictIf(
      heldPolls > 0 && heldPolls < maxSessions && Number.isFinite(maxSessions),
      `\`limits.heldPolls\` (${heldPolls}) is below \`fairQueue.globalMaxWaiters\` (${maxSessions})`,
      "sessions are admitted whose polls are then refused with 503",
      "Raise `limits.heldPolls` or lower `globalMaxWaiters`.",
    ),
  ];
}

function hostAdvice(level: Level, options: QueueOptions): Advice[] {
  const { path, own } = level;
  const ofKeys = Object.entries(own.keys ?? {}).flatMap(([name, { budgets, shadow }]) =>
    budgetAdvice(`${path}.keys.${name}`, budgets, shadow, options),
  );
  return [
    ...slotAdvice(level, options),
    ...budgetAdvice(path, own.budgets, false, options),
    ...ofKeys,
    ...narrowBuckets(level),
    ...schedulerAdvice(path, own, options),
  ];
}

/** `isTried`: budgets that do not say it are in shadow mode. */
function budgetAdvice(
  path: string,
  budgets: HostConfig["budgets"] = {},
  isTried = false,
  { maxWaitMs }: QueueOptions,
): Advice[] {
  return Object.entries(budgets).flatMap(([name, { limit, perSeconds, default: cost = 1, shadow = isTried }]) => {
    const refillMs = Math.round((cost * perSeconds * 1000) / limit);
    return conflictIf(
      refillMs > maxWaitMs && !shadow,
      `\`${path}.budgets.${name}\` needs ${refillMs} ms to refill its \`default\` (${cost}), longer than \`fairQueue.maxWaitMs\` (${maxWaitMs})`,
      "a request that finds the budget empty times out before it could be granted",
      "Raise `limit` or `maxWaitMs`, or lower `perSeconds` or `default`.",
    );
  });
}

function schedulerAdvice(path: string, own: HostConfig, { scheduler }: QueueOptions): Advice[] {
  return (["budgets", "keys", "classes"] as const).flatMap((name) =>
    conflictIf(
      scheduler.isEnabled && isConstrained(constraintsOf({ [name]: own[name] })),
      `\`${path}.${name}\` turns off \`fairQueue.weightedScheduler\``,
      "at a host with budgets, keys or classes, `order` alone chooses the next bucket",
      `Disable the scheduler, or remove the ${name}.`,
    ),
  );
}

/** The oldest request of a value may wait for its bucket. Those behind it wait, too, although their buckets have room. */
function narrowBuckets({ path, own, all: { keys, maxSlotPerIp = 0 } }: Level): Advice[] {
  if (keys === undefined || (own.keys === undefined && own.maxSlotPerIp === undefined)) return [];
  const wider = constraintsOf({ keys }).keys?.find(
    (key) => key.name !== BUCKET_KEY && isEnforced(key) && (key.slots ?? Number.POSITIVE_INFINITY) > maxSlotPerIp,
  );
  return conflictIf(
    wider !== undefined && maxSlotPerIp > 0,
    `\`${path}.maxSlotPerIp\` (${maxSlotPerIp}) limits a bucket to fewer slots than \`keys.${wider?.name}\` limits a value`,
    "if a value has requests of several buckets, its oldest request holds back the others while the bucket of the oldest is full",
    "Set `maxSlotPerIp` to -1, and limit users by a key, narrower keys first. If each value has one bucket only, this is no problem.",
  );
}

function slotAdvice({ path, own, all }: Level, { maxWaitMs, collectMs }: QueueOptions): Advice[] {
  const { maxSlotPerHost = 0, maxSlotPerIp = 0, maxWaitersPerIp = 0, maxWaitersPerHost = 0 } = all;
  const { minSlotHoldMs = 0, smoothReleaseIntervalMs = 0, ipCooldownSeconds = 0 } = all;
  const leaseMs = (all.zombieTimeoutSeconds ?? 0) * 1000;
  const lease = `\`zombieTimeoutSeconds\` (${all.zombieTimeoutSeconds})`;
  const advice: Advice[] = [];
  const add = (isSo: boolean, keys: readonly (keyof HostConfig)[], found: string, why: string, fix: string) => {
    const isOwn = keys.some((key) => own[key] !== undefined);
    advice.push(...conflictIf(isSo && isOwn, `\`${path}.${found}`, why, fix));
  };
  add(
    maxSlotPerIp > maxSlotPerHost,
    ["maxSlotPerIp", "maxSlotPerHost"],
    `maxSlotPerIp\` (${maxSlotPerIp}) is above \`maxSlotPerHost\` (${maxSlotPerHost})`,
    "the limit of a bucket is never reached, so one bucket can hold all slots of the host",
    "Lower `maxSlotPerIp`, or set it to -1 for no limit.",
  );
  add(
    maxWaitersPerHost > 0 && maxWaitersPerIp > maxWaitersPerHost,
    ["maxWaitersPerIp", "maxWaitersPerHost"],
    `maxWaitersPerIp\` (${maxWaitersPerIp}) is above \`maxWaitersPerHost\` (${maxWaitersPerHost})`,
    "the limit of a bucket is never reached",
    "Lower `maxWaitersPerIp`, or set it to 0 for no limit.",
  );
  add(
    leaseMs <= collectMs,
    ["zombieTimeoutSeconds"],
    `zombieTimeoutSeconds\` (${all.zombieTimeoutSeconds}) is not above \`collectMs\` (${collectMs} ms)`,
    "a slot that waits to be fetched expires before its caller has used it",
    "Raise `zombieTimeoutSeconds` or lower `collectMs`.",
  );
  add(
    minSlotHoldMs > leaseMs,
    ["minSlotHoldMs", "zombieTimeoutSeconds"],
    `minSlotHoldMs\` (${minSlotHoldMs}) is longer than ${lease}`,
    "a released slot is kept for one lease at most, so the hold is shorter than configured",
    "Lower `minSlotHoldMs` or raise `zombieTimeoutSeconds`.",
  );
  add(
    smoothReleaseIntervalMs > leaseMs,
    ["smoothReleaseIntervalMs", "zombieTimeoutSeconds"],
    `smoothReleaseIntervalMs\` (${smoothReleaseIntervalMs}) is longer than ${lease}`,
    "a released slot is kept for one lease at most, so releases come closer together than configured",
    "Lower `smoothReleaseIntervalMs` or raise `zombieTimeoutSeconds`.",
  );
  add(
    ipCooldownSeconds * 1000 >= maxWaitMs,
    ["ipCooldownSeconds"],
    `ipCooldownSeconds\` (${ipCooldownSeconds}) is not below \`fairQueue.maxWaitMs\` (${maxWaitMs})`,
    "a bucket that asks right after a release times out before its cooldown ends",
    "Lower `ipCooldownSeconds` or raise `maxWaitMs`.",
  );
  return advice;
}
