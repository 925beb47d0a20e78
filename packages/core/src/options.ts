/**
 * The only validator of options: of constructors, calls and environment variables. It refuses unknown keys and reports all
 * problems in one error: a `RangeError` if all of them concern numbers, otherwise a `TypeError`.
 */
import { LONGEST_DELAY_MS } from "./clock.ts";

/** Returns an error if the value of the field is invalid, otherwise `undefined`. */
export type Rule = (field: string, value: unknown) => Error | undefined;

/** A rule for each allowed key. */
export type Rules<T> = { readonly [Key in keyof T]-?: Rule };

/** `expectation` completes "Expected `field` to be …". */
export const kind =
  (
    expectation: string,
    accepts: (value: unknown) => boolean,
    Fault: typeof RangeError | typeof TypeError = TypeError,
  ): Rule =>
  (field, value) =>
    accepts(value) ? undefined : new Fault(`Expected \`${field}\` to be ${expectation}, got ${shown(value)}`);

export const range = (expectation: string, accepts: (value: number) => boolean): Rule =>
  kind(expectation, (value) => typeof value === "number" && accepts(value), RangeError);

export const numberFrom = (least: number): Rule => range(`a number from ${least} up`, (value) => value >= least);

export const finiteFrom = (least: number): Rule =>
  range(`a finite number from ${least} up`, (value) => value >= least && value < Infinity);

/** Above 0, and `most` included. */
export const positiveUpTo = (most: number): Rule =>
  range(`a number above 0 and at most ${most}`, (value) => value > 0 && value <= most);

export const positiveNumber: Rule = /* @__PURE__ */ range(
  "a finite number above 0",
  (value) => value > 0 && value < Infinity,
);

/** Both ends included. */
export const numberBetween = (least: number, most: number): Rule =>
  range(`a number from ${least} to ${most}`, (value) => value >= least && value <= most);

/** At least `least`, less than `below`. */
export const numberWithin = (least: number, below: number): Rule =>
  range(`a number from ${least} to less than ${below}`, (value) => value >= least && value < below);

export const integer: Rule = /* @__PURE__ */ range("an integer", (value) => Number.isSafeInteger(value));

/** Both ends included. */
export const integerFrom = (least: number, most = Infinity): Rule =>
  range(
    `an integer from ${least} ${most === Infinity ? "up" : `to ${most}`}`,
    (value) => value >= least && value <= most && value % 1 === 0,
  );

export const countFrom = (least: number): Rule =>
  // The remainder of `Infinity` is `NaN`.
  range(`an integer from ${least} up or Infinity`, (value) => value >= least && !(value % 1));

/** A delay in milliseconds that is passed to a host timer unchanged. */
export const timerMs: Rule = /* @__PURE__ */ numberBetween(1, LONGEST_DELAY_MS);

export const boolean: Rule = /* @__PURE__ */ kind("true or false", (value) => typeof value === "boolean");

/** Any string, including the empty one. */
export const string: Rule = /* @__PURE__ */ kind("a string", (value) => typeof value === "string");

export const callback: Rule = /* @__PURE__ */ kind("a function", (value) => typeof value === "function");

export const abortSignal: Rule = /* @__PURE__ */ kind(
  "an AbortSignal",
  (value) => typeof (value as AbortSignal | null)?.addEventListener === "function",
);

export const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

export const anyObject: Rule = /* @__PURE__ */ kind("an object", isObject);

/** An object that has these methods. */
export const objectWith = (...methods: string[]): Rule =>
  kind(
    `an object with ${methods.join("(), ")}()`,
    (value) =>
      isObject(value) && methods.every((name) => typeof (value as Record<string, unknown>)[name] === "function"),
  );

export const clockRule: Rule = /* @__PURE__ */ objectWith("now", "setTimer", "clearTimer");

/** Formats a value for a message: strings are in quotes, and long strings are cut off. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  return isObject(value) ? Object.prototype.toString.call(value) : String(value);
}

/** One error that reports all problems; `undefined` if there are none. */
export function errorOf(faults: readonly Error[]): Error | undefined {
  if (faults.length === 0) return undefined;
  const Kind = faults.every((fault) => fault instanceof RangeError) ? RangeError : TypeError;
  return new Kind(faults.map(({ message }) => message).join("; "));
}

/** Throws the error if there is one. */
export function throwIf(error: Error | undefined): void {
  if (error) throw error;
}

/** Throws if the value does not follow the rule. */
export function check(field: string, rule: Rule, value: unknown): void {
  throwIf(rule(field, value));
}

/**
 * Checks options and returns a copy without the keys that are `undefined`: every key must have a rule, and its value must
 * follow it. Use the copy and not the options: it has the values that were checked, while a getter may return another one
 * next time.
 */
export function readOptions<T extends object>(options: T | undefined, rules: Rules<T>, prefix = ""): T {
  const values = {} as T;
  if (options === undefined) return values;
  check("options", anyObject, options);
  const faults: Error[] = [];
  // Checks inherited keys too, so that an AbortSignal passed as options is refused.
  for (const key in options) {
    const value = options[key];
    if (!Object.hasOwn(rules, key)) faults.push(unknownOption(key, Object.keys(rules), prefix));
    else if (value !== undefined) {
      const fault = rules[key](prefix + key, value);
      if (fault) faults.push(fault);
      values[key] = value;
    }
  }
  throwIf(errorOf(faults));
  return values;
}

/** The error names the known options, the nearest first. */
function unknownOption(key: string, known: string[], prefix: string): Error {
  /** How many pairs of neighbouring characters of the key the name has, without regard to case. */
  const likeness = (name: string): number =>
    // oxlint-disable-next-line typescript/no-misused-spread -- only the number of characters counts
    [...key].filter((_, at) => name.toLowerCase().includes(key.slice(at, at + 2).toLowerCase())).length;
  known.sort((a, b) => likeness(b) - likeness(a));
  return new TypeError(`Unknown option \`${prefix}${key}\` (known: ${known.join(", ")})`);
}
