import type { NumberSetting } from "./setting.ts";

/** What the checks of settings share. The tables say what is allowed; these say how a problem is reported. */

/** What is wrong with a value, as a sentence. Nothing, if it is as expected. */
export function expected(isOk: boolean, path: string, expectation: string, value: unknown): string[] {
  return isOk ? [] : [`Expected \`${path}\` to be ${expectation}, got ${JSON.stringify(value)}`];
}

/** What is wrong with a table of named things, such as budgets: with itself, then with each of them. */
export function tableProblems(
  table: unknown,
  path: string,
  things: string,
  most: number,
  problemsOf: (name: string, thing: unknown, path: string) => string[],
): string[] {
  if (!isRecord(table)) return expected(false, path, `an object of ${things}`, table);
  const count = Object.keys(table).length;
  return [
    ...(count > most ? [`Expected \`${path}\` to have at most ${most} ${things}, got ${count}`] : []),
    ...Object.entries(table).flatMap(([name, thing]) => problemsOf(name, thing, `${path}.${name}`)),
  ];
}

/** The name of a budget, a key or a class. */
export const NAME = /^[a-z][a-z0-9_-]{0,31}$/;

/** How a problem of a name begins. The schemas do not check names. */
export const NAME_PROBLEM = "Expected the name";

/** Names become parts of headers, metrics and paths of settings. `path` ends with the name. */
export function nameProblems(name: string, path: string): string[] {
  if (NAME.test(name)) return [];
  return [`${NAME_PROBLEM} \`${path}\` to be 1 to 32 characters of a-z, 0-9, _ and -, and begin with one of a-z`];
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

/** What is wrong with a value of the setting. */
export function numberProblems(setting: NumberSetting, path: string, value: unknown): string[] {
  return expected(isWithin(setting, value), path, numberExpected(setting), value);
}

/** Whether a value is an object with fields: not an array, not `null`. */
export function isRecord(value: unknown): value is { readonly [field: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A file may have `null` in place of a key that it leaves out. */
export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}
