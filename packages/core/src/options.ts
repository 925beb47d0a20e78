/**
 * The one validator of options: of constructors, of calls, of environment variables. Unknown keys are refused, and
 * everything that is wrong is said in one error: a `RangeError` if all of it is about numbers, else a `TypeError`.
 */

export interface Rule {
  /** Completes "Expected `field` to be …". */
  readonly expectation: string;
  /** What a value that fails it is. */
  readonly Fault: typeof RangeError | typeof TypeError;
  accepts(value: unknown): boolean;
}

/** One rule for every key that may be given. */
export type Rules<T> = { readonly [Key in keyof T]-?: Rule };

/** The longest delay a host's timer takes: beyond it, timers fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const kind = (expectation: string, accepts: (value: unknown) => boolean): Rule => ({
  expectation,
  Fault: TypeError,
  accepts,
});

export const range = (expectation: string, accepts: (value: number) => boolean): Rule => ({
  expectation,
  Fault: RangeError,
  accepts: (value) => typeof value === "number" && accepts(value),
});

export const numberFrom = (least: number): Rule => range(`a number from ${least} up`, (value) => value >= least);

export const finiteFrom = (least: number): Rule =>
  range(`a finite number from ${least} up`, (value) => value >= least && value < Infinity);

/** Above 0. */
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
    (value) => Number.isInteger(value) && value >= least && value <= most,
  );

export const countFrom = (least: number): Rule =>
  // The remainder of `Infinity` is `NaN`.
  range(`an integer from ${least} up or Infinity`, (value) => value >= least && !(value % 1));

/** A delay that is handed to a timer as it is. */
export const timerMs: Rule = /* @__PURE__ */ numberBetween(1, LONGEST_TIMER_MS);

export const boolean: Rule = /* @__PURE__ */ kind("true or false", (value) => typeof value === "boolean");

/** Any, the empty one too. */
export const string: Rule = /* @__PURE__ */ kind("a string", (value) => typeof value === "string");

export const callback: Rule = /* @__PURE__ */ kind("a function", (value) => typeof value === "function");

export const abortSignal: Rule = /* @__PURE__ */ kind(
  "an AbortSignal",
  (value) => typeof (value as AbortSignal | null)?.addEventListener === "function",
);

/** An object that has these methods. */
export const objectWith = (...methods: string[]): Rule =>
  kind(
    methods.length === 0 ? "an object" : `an object with ${methods.join("(), ")}()`,
    (value) =>
      typeof value === "object" &&
      value !== null &&
      methods.every((name) => typeof (value as Record<string, unknown>)[name] === "function"),
  );

export const anyObject: Rule = /* @__PURE__ */ objectWith();

export const clockRule: Rule = /* @__PURE__ */ objectWith("now", "setTimer", "clearTimer");

/** As it is shown in a message: strings in quotes, and cut off where they are long. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
  return typeof value === "object" && value !== null ? Object.prototype.toString.call(value) : String(value);
}

/** The error about a value that does not follow its rule. */
export function faultOf(field: string, { expectation, Fault }: Rule, value: unknown): Error {
  return new Fault(`Expected \`${field}\` to be ${expectation}, got ${shown(value)}`);
}

/** The one error that says all that is wrong, if anything is. */
export function errorOf(faults: readonly Error[]): Error | undefined {
  if (faults.length === 0) return undefined;
  const Kind = faults.every((fault) => fault instanceof RangeError) ? RangeError : TypeError;
  return new Kind(faults.map(({ message }) => message).join("; "));
}

/** As `throw`, if there is anything to throw. */
export function throwIf(error: Error | undefined): void {
  if (error) throw error;
}

/** Every key that is given and not `undefined` has to be known and to follow its rule. */
export function faultsOf<T extends object>(options: T, rules: Rules<T>, prefix = ""): Error[] {
  if (!anyObject.accepts(options)) return [faultOf(prefix.slice(0, -1) || "options", anyObject, options)];
  const faults: Error[] = [];
  // Inherited keys too, so that an AbortSignal passed as options is refused.
  for (const key in options) {
    const value = options[key];
    const field = prefix + key;
    // What every object inherits is no rule.
    if (!rules[key]?.accepts) faults.push(new TypeError(`Unknown option \`${field}\``));
    else if (value !== undefined && !rules[key].accepts(value)) faults.push(faultOf(field, rules[key], value));
  }
  return faults;
}

/** Refuses a value that does not follow its rule. */
export function check(field: string, rule: Rule, value: unknown): void {
  if (!rule.accepts(value)) throw faultOf(field, rule, value);
}

/** Refuses options that make no sense. */
export function checkOptions<T extends object>(options: T | undefined, rules: Rules<T>): void {
  if (options !== undefined) throwIf(errorOf(faultsOf(options, rules)));
}

/** The defaults and what is given instead, checked. */
export function resolveOptions<T extends object>(
  defaults: T,
  rules: Rules<NoInfer<T>>,
  options: { [K in keyof T]?: T[K] | undefined },
): T {
  checkOptions(options, rules as Rules<typeof options>);
  const resolved = { ...defaults };
  for (const key in options) if (options[key] !== undefined) resolved[key] = options[key];
  return resolved;
}
