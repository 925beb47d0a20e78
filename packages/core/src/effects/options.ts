/** Options as callers give them: unknown keys are refused, and all problems are named at once. */
import { describe } from "./program.ts";

export interface Rule {
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

export const aString: Rule = { expected: "a string", accepts: (value) => typeof value === "string" };
export const aBoolean: Rule = { expected: "a boolean", accepts: (value) => typeof value === "boolean" };
export const aFunction: Rule = { expected: "a function", accepts: (value) => typeof value === "function" };
export const anInteger: Rule = { expected: "an integer", accepts: Number.isSafeInteger };
export const aCount: Rule = {
  expected: "an integer from 1 up",
  accepts: (value) => Number.isSafeInteger(value) && (value as number) >= 1,
};
export const aDuration: Rule = {
  expected: "a finite number of milliseconds from 0 up",
  accepts: (value) => Number.isFinite(value) && (value as number) >= 0,
};
export const anObject: Rule = {
  expected: "an object",
  accepts: (value) => typeof value === "object" && value !== null,
};

/** Throws a `TypeError` that lists every unknown key and every value that its rule does not accept. */
export function checkOptions(of: string, options: unknown, rules: Readonly<Record<string, Rule>>): void {
  if (options === undefined) return;
  if (!anObject.accepts(options)) {
    throw new TypeError(`Expected the options of ${of} to be an object, got ${describe(options)}`);
  }
  const problems = Object.entries(options as object).flatMap(([key, value]) => problem(key, value, rules));
  if (problems.length > 0) throw new TypeError(`${of}: ${problems.join("; ")}`);
}

function problem(key: string, value: unknown, rules: Readonly<Record<string, Rule>>): string[] {
  const rule = Object.hasOwn(rules, key) ? rules[key] : undefined;
  if (rule === undefined) return [`unknown option \`${key}\`, expected some of: ${Object.keys(rules).join(", ")}`];
  if (value === undefined || rule.accepts(value)) return [];
  return [`expected \`${key}\` to be ${rule.expected}, got ${describe(value)}`];
}

/** Milliseconds that make sense for a timer, or a `RangeError` that names the parameter. */
export function checkDuration(name: string, value: unknown): number {
  if (aDuration.accepts(value)) return value as number;
  throw new RangeError(`Expected \`${name}\` to be ${aDuration.expected}, got ${describe(value)}`);
}
