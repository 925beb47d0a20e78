/** Gathers what is wrong with many values, to refuse it all at once. */
import { checkOptions, errorOf, type Rule, type Rules, throwIf } from "./options.ts";

export class Problems {
  readonly #faults: Error[] = [];

  /** Whether the value follows the rule. */
  expect(field: string, rule: Rule, value: unknown): boolean {
    const fault = rule(field, value);
    if (fault) this.#faults.push(fault);
    return !fault;
  }

  add(sentence: string, isRange: boolean): void {
    this.#faults.push(new (isRange ? RangeError : TypeError)(sentence));
  }

  /** Every key that is given and not `undefined` has to be known and to follow its rule. */
  expectAll<T extends object>(options: T | undefined, rules: Rules<T>, prefix?: string): void {
    try {
      checkOptions(options, rules, prefix);
    } catch (error) {
      this.#faults.push(error as Error);
    }
  }

  /** The one error that says it all, if anything is wrong. */
  get error(): Error | undefined {
    return errorOf(this.#faults);
  }

  throwIfAny(): void {
    throwIf(this.error);
  }
}
