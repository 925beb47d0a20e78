import type { NumberSetting } from "./setting.ts";

/** What the checks of settings share. The tables say what is allowed; these say how a problem is reported. */

/** The name of a budget, a key or a class. */
export const NAME = /^[a-z][a-z0-9_-]{0,31}$/;

/** Names become parts of headers, metrics and paths of settings. `path` ends with the name. */
export function nameProblems(name: string, path: string): string[] {
  if (NAME.test(name)) return [];
  return [`Expected the name \`${path}\` to be 1 to 32 characters of a-z, 0-9, _ and -, and begin with one of a-z`];
}

/** Whether a value is a number that the setting allows. */
export function isWithin({ type, min, above, max }: NumberSetting, value: unknown): value is number {
  if (typeof value !== "number" || !Number.isFinite(value) || (type === "integer" && !Number.isInteger(value)))
    return false;
  return value >= (min ?? value) && (above === undefined || value > above) && value <= (max ?? value);
}

/** What `isWithin` allows, in words. */
export function numberExpected({ type, min, above, max }: NumberSetting): string {
  const what = type === "integer" ? "a whole number" : "a number";
  if (min !== undefined && max !== undefined) return `${what} from ${min} to ${max}`;
  const least = min !== undefined ? ` from ${min} up` : above !== undefined ? ` above ${above}` : "";
  const most = max === undefined ? "" : `, at most ${max}`;
  return type === "number" && least === "" ? `a finite number${most}` : `${what}${least}${most}`;
}

/** Whether a value is an object with fields: not an array, not `null`. */
export function isRecord(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A file may have `null` in place of a key that it leaves out. */
export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
