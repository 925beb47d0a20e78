/** Reads environment variables as values. An empty variable counts as not set. A malformed one is a problem that names it. */
import type { Rule } from "../options.ts";
import { Problems } from "../problems.ts";

/** Environment variables: `process.env`, or any record of strings. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Only plain decimals: `Number` would also accept hexadecimal. */
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
  /** The names of the malformed variables. */
  readonly malformed: string[] = [];

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  /** Returns `undefined` if the variable is empty, not set or malformed. A malformed variable is added to the problems. */
  number(variable: string, rule: Rule): number | undefined {
    const text = this.#environment[variable];
    if (!text) return undefined;
    const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
    return rule(variable, value) ? this.#refuse(variable, rule, text) : value;
  }

  boolean(variable: string, rule: Rule): boolean | undefined {
    const text = this.#environment[variable];
    if (!text) return undefined;
    return WORDS.get(text.toLowerCase()) ?? this.#refuse(variable, rule, text);
  }

  /** The rules are about numbers and booleans, so that they refuse any text: the message shows it. */
  #refuse(variable: string, rule: Rule, text: string): undefined {
    this.malformed.push(variable);
    this.problems.add(String(rule(variable, text)?.message), true);
  }
}
