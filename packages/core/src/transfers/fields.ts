/** What options are checked for: unknown keys are refused, and everything that is wrong is said in one error. */

export interface Rule {
  /** Completes "Expected `field` to be …". */
  readonly expectation: string;
  /** Whether failing it is a `RangeError`; a `TypeError` otherwise. */
  readonly isRange: boolean;
  accepts(value: unknown): boolean;
}

/** One rule for every key that may be given. */
export type Rules<T> = { readonly [Key in keyof T]-?: Rule };

/** The longest delay a host's timer takes: beyond it, timers fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const range = (expectation: string, accepts: (value: number) => boolean): Rule => ({
  expectation,
  isRange: true,
  accepts: (value) => typeof value === "number" && accepts(value),
});

export const numberFrom = (least: number): Rule => range(`a number from ${least} up`, (value) => value >= least);

export const finiteFrom = (least: number): Rule =>
  range(`a finite number from ${least} up`, (value) => value >= least && value < Infinity);

export const positiveNumber: Rule = range("a finite number above 0", (value) => value > 0 && value < Infinity);

/** At least `least`, less than `below`. */
export const numberWithin = (least: number, below: number): Rule =>
  range(`a number from ${least} to less than ${below}`, (value) => value >= least && value < below);

export const integerFrom = (least: number): Rule =>
  range(`an integer from ${least} up`, (value) => Number.isInteger(value) && value >= least);

export const countFrom = (least: number): Rule =>
  range(`an integer from ${least} up or Infinity`, (value) => value === Infinity || integerFrom(least).accepts(value));

/** A delay that is handed to a timer as it is. */
export const timerMs: Rule = range(
  `a number from 1 to ${LONGEST_TIMER_MS}`,
  (value) => value >= 1 && value <= LONGEST_TIMER_MS,
);

export const boolean: Rule = {
  expectation: "true or false",
  isRange: false,
  accepts: (value) => typeof value === "boolean",
};

/** Any, the empty one too. */
export const string: Rule = {
  expectation: "a string",
  isRange: false,
  accepts: (value) => typeof value === "string",
};

export const callback: Rule = {
  expectation: "a function",
  isRange: false,
  accepts: (value) => typeof value === "function",
};

/** An object that has these methods. */
export const objectWith = (...methods: string[]): Rule => ({
  expectation: methods.length === 0 ? "an object" : `an object with ${methods.map((name) => `${name}()`).join(", ")}`,
  isRange: false,
  accepts: (value) =>
    typeof value === "object" &&
    value !== null &&
    methods.every((name) => typeof (value as Record<string, unknown>)[name] === "function"),
});

/** As it is shown in a message: strings in quotes. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return typeof value === "object" && value !== null ? Object.prototype.toString.call(value) : String(value);
}

/** Gathers what is wrong, to refuse it all at once. */
export class Problems {
  readonly #sentences: string[] = [];
  #isRange = true;

  expect(field: string, rule: Rule, value: unknown): boolean {
    if (rule.accepts(value)) return true;
    this.add(`Expected \`${field}\` to be ${rule.expectation}, got ${shown(value)}`, rule.isRange);
    return false;
  }

  add(sentence: string, isRange: boolean): void {
    this.#sentences.push(sentence);
    this.#isRange &&= isRange;
  }

  /** Every key that is given and not `undefined` has to be known and to follow its rule. */
  expectAll<T extends object>(options: T | undefined, rules: Rules<T>, prefix = ""): void {
    if (options === undefined) return;
    const isObject = this.expect(prefix === "" ? "options" : prefix.slice(0, -1), objectWith(), options);
    if (!isObject) return;
    for (const [key, value] of Object.entries(options)) {
      const rule = Object.hasOwn(rules, key) ? rules[key as keyof T] : undefined;
      if (rule === undefined) this.add(`Unknown option \`${prefix}${key}\``, false);
      else if (value !== undefined) this.expect(prefix + key, rule, value);
    }
  }

  /** The one error that says it all, if anything is wrong. */
  get error(): Error | undefined {
    if (this.#sentences.length === 0) return undefined;
    const message = this.#sentences.join("; ");
    return this.#isRange ? new RangeError(message) : new TypeError(message);
  }

  throwIfAny(): void {
    const { error } = this;
    if (error !== undefined) throw error;
  }
}
