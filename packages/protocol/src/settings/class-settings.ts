import { LIMITS } from "../limits.ts";
import { budgetOfOrder } from "./budget-settings.ts";
import type { Settings } from "./setting.ts";
import { expected, isAbsent, isRecord, nameProblems, numberProblems, tableProblems } from "./setting-checks.ts";

/** The weight of a bucket or a class. Sums of much larger or smaller ones would lose their fractions. */
export const WEIGHT = { type: "number", unit: "count", min: 0.001, max: 1_000_000, default: 1 } as const;

/** The keys of one class in `classes`, of `fairQueue` or of a host. */
export const CLASS_SETTINGS = {
  weight: WEIGHT,
  floor: { type: "integer", unit: "count", min: 0, default: 0 },
  ceiling: { type: "integer", unit: "count", min: 1 },
} as const satisfies Settings;

/** The class of requests that name none. */
export const DEFAULT_CLASS = "default";

/** A class as the engine and stores have it. */
export interface ClassPolicy {
  readonly weight: number;
  /** Its share is at least this number of slots while slots are short. */
  readonly floor: number;
  /** Absent: the class may have all slots. */
  readonly ceiling?: number;
}

/** The classes of a host, by name. `DEFAULT_CLASS` is always one of them. */
export type ClassPolicies = { readonly [name: string]: ClassPolicy };

/** One class of a configuration. */
interface ClassConfig {
  readonly weight?: number | undefined;
  readonly floor?: number | undefined;
  readonly ceiling?: number | undefined;
}

/** Classes of a configuration, by name. */
type ClassConfigs = { readonly [name: string]: ClassConfig };

/** Classes of a configuration in the engine's units. Undefined: there are none. */
export function resolveClasses(classes: ClassConfigs = {}): ClassPolicies | undefined {
  const names = Object.keys(classes);
  if (names.length === 0) return undefined;
  const all = { [DEFAULT_CLASS]: {}, ...classes };
  return Object.fromEntries(Object.entries(all).map(([name, config]) => [name, resolveClass(config)]));
}

function resolveClass({ weight, floor, ceiling }: ClassConfig): ClassPolicy {
  return {
    weight: weight ?? CLASS_SETTINGS.weight.default,
    floor: floor ?? CLASS_SETTINGS.floor.default,
    ...(ceiling === undefined || ceiling === null ? {} : { ceiling }),
  };
}

/** The sum of the floors of a host's classes. It must be less than the host's slots. */
export function sumOfFloors(classes: ClassConfigs = {}): number {
  return Object.values(classes).reduce((sum, { floor }) => sum + (floor ?? 0), 0);
}

/** What is wrong with the classes of a configuration, as a sentence each, with the path of the key. */
export function classProblems(classes: unknown, path: string): string[] {
  return tableProblems(classes, path, "classes", LIMITS.classes, classProblem);
}

function classProblem(name: string, given: unknown, path: string): string[] {
  if (!isRecord(given)) return expected(false, path, "an object", given);
  const { weight: _, floor, ceiling, ...unknown } = given;
  const isBelow = typeof floor === "number" && typeof ceiling === "number" && ceiling < floor;
  return [
    ...nameProblems(name, path),
    ...Object.keys(unknown).map((key) => `Unknown key \`${path}.${key}\``),
    ...Object.entries(CLASS_SETTINGS).flatMap(([field, setting]) =>
      isAbsent(given[field]) ? [] : numberProblems(setting, `${path}.${field}`, given[field]),
    ),
    ...(isBelow ? [`Expected \`${path}.ceiling\` to be at least \`floor\` (${floor}), got ${ceiling}`] : []),
  ];
}

/** What is wrong with the floors of a host that has this order and this number of slots, as a sentence each. */
export function floorProblems(
  { classes, order, slots }: { readonly classes: ClassConfigs; readonly order: unknown; readonly slots: number },
  path: string,
): string[] {
  const sum = sumOfFloors(classes);
  if (sum === 0) return [];
  const isByBudget = typeof order === "string" && budgetOfOrder(order) !== undefined;
  return [
    ...(isByBudget ? [`Expected \`${path}\` to have no \`floor\` with the order ${JSON.stringify(order)}`] : []),
    ...(sum < slots
      ? []
      : [`Expected the floors of \`${path}\` to sum up to less than the slots (${slots}), got ${sum}`]),
  ];
}
