/** Environment variables as values. What is malformed is a problem that names the variable, never a default. */
import type { Rule } from "../options.ts";
import { Problems } from "../problems.ts";

/** Environment variables: `process.env`, or any record of strings. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Plain decimals: `Number` would take an empty variable for 0, and accept hexadecimal. */
const DECIMAL = /^-?\d+(\.\d+)?$/;

const WORDS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

export class EnvironmentReader {
  readonly #environment: Environment;
  readonly problems = new Problems();

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** `undefined` if not set, or malformed, which then is among the problems. */
  number(variable: string, rule: Rule): number | undefined {
    const text = this.#environment[variable];
    if (text === undefined) return undefined;
    const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
    return rule(variable, value) ? this.#refuse(variable, rule, text) : value;
  }

  boolean(variable: string, rule: Rule): boolean | undefined {
    const text = this.#environment[variable];
    if (text === undefined) return undefined;
    return WORDS.get(text.toLowerCase()) ?? this.#refuse(variable, rule, text);
  }

  /** The rules are about numbers and booleans, so that they refuse any text: the message shows it. */
  #refuse(variable: string, rule: Rule, text: string): undefined {
    this.problems.add(String(rule(variable, text)?.message), true);
  }
}
