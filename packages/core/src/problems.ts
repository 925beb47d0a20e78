/** Gathers what is wrong with many values, to refuse it all at once. */
import { errorOf, type Fault, faultOf, faultsOf, type Rule, type Rules } from "./options.ts";

export class Problems {
  readonly #faults: Fault[] = [];

  /** Whether the value follows the rule. */
  expect(field: string, rule: Rule, value: unknown): boolean {
    const isFine = rule.accepts(value);
    if (!isFine) this.#faults.push(faultOf(field, rule, value));
    return isFine;
  }

  add(sentence: string, isRange: boolean): void {
    this.#faults.push({ sentence, isRange });
  }

  /** Every key that is given and not `undefined` has to be known and to follow its rule. */
  expectAll<T extends object>(options: T | undefined, rules: Rules<T>, prefix?: string): void {
    if (options !== undefined) this.#faults.push(...faultsOf(options, rules, prefix));
  }

  /** The one error that says it all, if anything is wrong. */
  get error(): Error | undefined {
    return errorOf(this.#faults);
  }

  throwIfAny(): void {
    const { error } = this;
    if (error !== undefined) throw error;
  }
}
