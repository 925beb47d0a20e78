/** Collects the problems of many values, to report them in one error. */
import { checkOptions, errorOf, type Rule, type Rules, throwIf } from "./options.ts";

export class Problems {
  readonly #faults: Error[] = [];

  /** Records a problem if the value does not follow the rule. Returns whether it follows the rule. */
  expect(field: string, rule: Rule, value: unknown): boolean {
    const fault = rule(field, value);
    if (fault) this.#faults.push(fault);
    return !fault;
  }

  /** Records a problem. `isRange`: whether it concerns a number. */
  add(sentence: string, isRange: boolean): void {
    this.#faults.push(new (isRange ? RangeError : TypeError)(sentence));
  }

  /** Records the problems of options: every key that is not `undefined` must have a rule, and its value must follow it. */
  expectAll<T extends object>(options: T | undefined, rules: Rules<T>, prefix?: string): void {
    try {
      checkOptions(options, rules, prefix);
    } catch (error) {
      this.#faults.push(error as Error);
    }
  }

  /** One error that reports all problems; `undefined` if there are none. */
  get error(): Error | undefined {
    return errorOf(this.#faults);
  }

  throwIfAny(): void {
    throwIf(this.error);
  }
}
