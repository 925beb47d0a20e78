import {
  budgetProblems,
  classProblems,
  floorProblems,
  HOST_LIMITS,
  type HostLimitsConfig,
  keyProblems,
  LIMITS,
  NAME_PROBLEM,
  orderProblems,
  SEMAPHORE_PREFIX,
  type ServiceConfig,
} from "@slotkeeper/protocol";
import { fieldName } from "../words/validator.ts";

/** An invalid combination of keys, as a sentence, and the keys that it is about. */
export interface CrossProblem {
  readonly about: readonly string[];
  readonly message: string;
}

/** Combinations under `fairQueue` that cannot work. */
export function queueProblems({ fairQueue = {} }: ServiceConfig): CrossProblem[] {
  const problems = [
    ...holdProblems("fairQueue", fairQueue),
    ...costProblems("fairQueue", fairQueue),
    ...orderedProblems("fairQueue", fairQueue, {}),
    ...shareProblems("fairQueue", fairQueue, {}),
  ];
  for (const [host, limits] of Object.entries(fairQueue.hosts ?? {})) {
    const path = fieldName(["fairQueue", "hosts", host]);
    problems.push(
      ...costProblems(path, limits),
      ...orderedProblems(path, limits, fairQueue),
      ...shareProblems(path, limits, host.startsWith(SEMAPHORE_PREFIX) ? undefined : fairQueue),
    );
    if (limits.maxHoldSeconds === undefined && limits.zombieTimeoutSeconds === undefined) continue;
    problems.push(...holdProblems(path, { ...fairQueue, ...limits }));
  }
  return problems;
}

/** What the schema does not know: names of budgets and keys, their number, and a usual cost that no grant could pay. */
function costProblems(path: string, { budgets = {}, keys = {} }: HostLimitsConfig): CrossProblem[] {
  const ofBudgets = budgetProblems(budgets, `${path}.budgets`, LIMITS.budgets);
  return [
    ...tableProblems(`${path}.budgets`, ofBudgets),
    ...tableProblems(`${path}.keys`, keyProblems(keys, `${path}.keys`)),
  ];
}

/** A name does not depend on what it names, so it is checked even if the schema refuses something in the table. */
function tableProblems(table: string, messages: readonly string[]): CrossProblem[] {
  return messages.map((message) => ({ about: message.startsWith(NAME_PROBLEM) ? [] : [table], message }));
}

/** An order by a budget that the host does not have. A problem of inherited keys alone is reported where they are set. */
function orderedProblems(path: string, own: HostLimitsConfig, inherited: HostLimitsConfig): CrossProblem[] {
  if (own.order === undefined && own.budgets === undefined) return [];
  const { order, budgets } = { ...inherited, ...own };
  const about = [`${path}.order`, `${path}.budgets`];
  return orderProblems(order, budgets, path).map((message) => ({ about, message }));
}

/**
 * What the schema does not know of classes: their names and number, and floors that the slots or the order do not allow.
 * A problem of inherited keys alone is reported where they are set. `inherited` is undefined for a named semaphore, to
 * which classes do not apply.
 */
function shareProblems(path: string, own: HostLimitsConfig, inherited: HostLimitsConfig | undefined): CrossProblem[] {
  const shape = own.classes === undefined ? [] : classProblems(own.classes, `${path}.classes`);
  if (shape.length > 0) return tableProblems(`${path}.classes`, shape);
  if (inherited === undefined) return [];
  if (own.classes === undefined && own.order === undefined && own.maxSlotPerHost === undefined) return [];
  const { classes = {}, order, maxSlotPerHost: slots = HOST_LIMITS.maxSlotPerHost.default } = { ...inherited, ...own };
  const about = [`${path}.classes`, `${path}.order`, `${path}.maxSlotPerHost`];
  return floorProblems({ classes, order, slots }, `${path}.classes`).map((message) => ({ about, message }));
}

/** A lease that is longer than the longest hold would never end by itself. */
function holdProblems(path: string, { maxHoldSeconds, zombieTimeoutSeconds }: HostLimitsConfig): CrossProblem[] {
  if (maxHoldSeconds === undefined || zombieTimeoutSeconds === undefined) return [];
  if (maxHoldSeconds >= zombieTimeoutSeconds) return [];
  const message = `Expected \`${path}.maxHoldSeconds\` to be at least \`zombieTimeoutSeconds\` (${zombieTimeoutSeconds}), got ${maxHoldSeconds}`;
  return [{ about: [`${path}.maxHoldSeconds`, `${path}.zombieTimeoutSeconds`], message }];
}

/** An override that no host name can match, or two overrides for the same name. */
export function hostProblems({ fairQueue }: ServiceConfig): CrossProblem[] {
  const problems: CrossProblem[] = [];
  const spelled = new Map<string, string>();
  for (const pattern of Object.keys(fairQueue?.hosts ?? {})) {
    const field = fieldName(["fairQueue", "hosts", pattern]);
    const twin = spelled.get(pattern.toLowerCase());
    spelled.set(pattern.toLowerCase(), pattern);
    const rest = pattern === "*" ? "any" : pattern.replace(/^\*\./, "");
    const add = (message: string) => problems.push({ about: [field], message });
    if (rest === "" || rest.includes("*")) {
      const expected = 'a host name, `*.` and a host name, or "*" alone';
      add(`Expected the host of \`${field}\` to be ${expected}, got ${JSON.stringify(pattern)}: it would never match`);
    } else if (rest.endsWith(".")) {
      add(`Expected the host of \`${field}\` to end without a dot: it would never match`);
    } else if (twin !== undefined) {
      add(
        `\`${field}\` and \`${fieldName(["fairQueue", "hosts", twin])}\` name the same host: upper and lower case do not differ`,
      );
    }
  }
  return problems;
}

/** A combination is checked only if each of its keys is valid. Otherwise one mistake would be reported twice. */
export function isJudgeable({ about }: CrossProblem, badFields: readonly string[]): boolean {
  return !badFields.some((bad) => about.some((key) => isUnder(key, bad) || isUnder(bad, key)));
}

/** Whether a field is another, or a part of it. */
export function isUnder(field: string, above: string): boolean {
  return field === above || field.startsWith(`${above}.`) || field.startsWith(`${above}[`);
}
