/** Collects the problems of many values, to report them in one error. */
import { errorOf, isObject, type Rule, type Rules, readOptions, throwIf } from "./options.ts";

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

  /** Like `readOptions`, but records the problems. With problems, the result serves only to find more of them. */
  readAll<T extends object>(options: T | undefined, rules: Rules<T>, prefix?: string): T {
    try {
      return readOptions(options, rules, prefix);
    } catch (error) {
      this.#faults.push(error as Error);
      return isObject(options) ? options : ({} as T);
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
