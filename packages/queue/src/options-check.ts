import {
  BREAKER_LIMITS,
  budgetOfOrder,
  budgetProblems,
  CLEANUP_SETTINGS,
  classProblems,
  type FairQueueConfig,
  floorProblems,
  HOST_LIMITS,
  isRecord,
  isWithin,
  keyProblems,
  LIMITS,
  NAME,
  numberExpected,
  orderProblems,
  QUEUE_SETTINGS,
  SCHEDULER_SETTINGS,
  SEMAPHORE_PREFIX,
  type Setting,
  WEIGHT,
} from "@slotkeeper/protocol";

/**
 * Refuses a configuration with unknown keys, wrong types or impossible values, and reports all problems at once, by
 * path. The tables of settings define what is allowed; this file defines how a problem is reported.
 */

/** Returns what is expected, or undefined if the value is valid. */
type Rule = (value: unknown) => string | undefined;
type Rules = { readonly [key: string]: Setting | Rule | Rules };

const HOST_RULES: Rules = { ...HOST_LIMITS, breaker: BREAKER_LIMITS };

const OVERRIDE_RULES: Rules = {
  ...HOST_RULES,
  weights: (value) =>
    isRecord(value) && Object.values(value).every((weight) => isWithin(WEIGHT, weight))
      ? undefined
      : `an object of numbers from ${WEIGHT.min} to ${WEIGHT.max}`,
};

const FAIR_QUEUE_RULES: Rules = {
  ...HOST_RULES,
  ...QUEUE_SETTINGS,
  cleanup: CLEANUP_SETTINGS,
  weightedScheduler: SCHEDULER_SETTINGS,
};

export function checkConfig(config: FairQueueConfig): void {
  const problems: string[] = [];
  const { hosts, ...flat } = config as Record<string, unknown>;
  checkHost(flat, FAIR_QUEUE_RULES, "fairQueue", problems);
  problems.push(...orderProblems(flat["order"], flat["budgets"] as object, "fairQueue"));
  problems.push(...floorsOf(flat, {}, "fairQueue"));
  if (isRecord(hosts)) {
    for (const [host, limits] of Object.entries(hosts)) {
      const path = `fairQueue.hosts["${host}"]`;
      checkHost(limits, OVERRIDE_RULES, path, problems);
      const own = isRecord(limits) ? limits : {};
      problems.push(
        ...orderProblems(own["order"] ?? flat["order"], (own["budgets"] ?? flat["budgets"]) as object, path),
        // Classes do not apply to named semaphores.
        ...(host.startsWith(SEMAPHORE_PREFIX) ? [] : floorsOf(own, flat, path)),
      );
    }
  } else if (hosts !== undefined && hosts !== null) {
    problems.push(`Expected \`fairQueue.hosts\` to be an object, got ${JSON.stringify(hosts)}`);
  }
  if (problems.length > 0) throw new RangeError(problems.join("\n"));
}

function checkHost(value: unknown, rules: Rules, path: string, problems: string[]): void {
  const { budgets, keys, classes, ...rest } = isRecord(value) ? value : {};
  check(isRecord(value) ? rest : value, rules, path, problems);
  if (budgets !== undefined && budgets !== null)
    problems.push(...budgetProblems(budgets, `${path}.budgets`, LIMITS.budgets));
  if (keys !== undefined && keys !== null) problems.push(...keyProblems(keys, `${path}.keys`));
  if (classes !== undefined && classes !== null) problems.push(...classProblems(classes, `${path}.classes`));
}

/** Floors that the slots or the order do not allow. A problem of inherited keys alone is reported where they are set. */
function floorsOf(own: Record<string, unknown>, inherited: Record<string, unknown>, path: string): string[] {
  const keys = ["classes", "order", "maxSlotPerHost"] as const;
  if (keys.every((key) => own[key] === undefined || own[key] === null)) return [];
  const [classes, order, slots = HOST_LIMITS.maxSlotPerHost.default] = keys.map((key) => own[key] ?? inherited[key]);
  // A class that is wrong by itself is reported for that.
  if (!isRecord(classes) || classProblems(classes, "").length > 0 || !isFinite(slots)) return [];
  return floorProblems(
    { classes: classes as NonNullable<FairQueueConfig["classes"]>, order, slots },
    `${path}.classes`,
  );
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

function checkItem(item: unknown, rule: Setting | Rule | Rules, path: string, problems: string[]): void {
  if (!isSetting(rule) && typeof rule !== "function") {
    check(item, rule, path, problems);
    return;
  }
  const expected = typeof rule === "function" ? rule(item) : expectation(rule, item);
  if (expected !== undefined) problems.push(`Expected \`${path}\` to be ${expected}, got ${JSON.stringify(item)}`);
}

function expectation(setting: Setting, value: unknown): string | undefined {
  switch (setting.type) {
    case "flag":
      return typeof value === "boolean" ? undefined : "true or false";
    case "choice":
      return isChoice(setting, value) ? undefined : choicesOf(setting);
    case "codes":
      return Array.isArray(value) && value.every(isCode) ? undefined : "a list of HTTP status codes";
    case "integer":
    case "number":
      return isWithin(setting, value) ? undefined : numberExpected(setting);
  }
}

type ChoiceSetting = Setting & { readonly type: "choice" };

function isChoice({ choices, orBudget }: ChoiceSetting, value: unknown): boolean {
  if (typeof value !== "string") return false;
  return choices.includes(value) || (orBudget === true && NAME.test(budgetOfOrder(value) ?? ""));
}

function choicesOf({ choices, orBudget }: ChoiceSetting): string {
  const names = choices.map((choice) => `"${choice}"`).join(" or ");
  return orBudget === true ? `${names}, or "budget:" and the name of a budget` : names;
}

function isSetting(rule: Setting | Rule | Rules): rule is Setting {
  return "type" in rule && typeof rule.type === "string";
}

function isFinite(value: unknown): value is number {
  return Number.isFinite(value);
}

function isCode(value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) <= 599;
}
