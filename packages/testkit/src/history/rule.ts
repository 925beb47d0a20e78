import type { Call } from "./call.ts";
import type { History } from "./history.ts";

export type RuleName = `HIST${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11 | 12 | 13 | 14}`;

/** An answer, or the lack of one, that the documentation does not allow. */
export interface Violation {
  readonly rule: RuleName;
  readonly host: string;
  readonly at: number;
  readonly detail: string;
  /** The numbers of the lines concerned. */
  readonly lines: readonly number[];
}

/** What a rule says about a history. */
interface Finding {
  readonly violations: Violation[];
  /** How many things it could judge. */
  judged: number;
  /** Why it could not judge others. */
  readonly unjudged: Set<string>;
}

export interface Rule {
  readonly name: RuleName;
  readonly title: string;
  judge(history: History): Finding;
}

/** Collects what one rule finds. */
export class Findings implements Finding {
  readonly violations: Violation[] = [];
  judged = 0;
  readonly unjudged = new Set<string>();
  readonly #rule: RuleName;
  readonly #history: History;

  constructor(rule: RuleName, history: History) {
    this.#rule = rule;
    this.#history = history;
  }

  add(host: string, at: number, detail: string, calls: readonly (Pick<Call, "line"> | undefined)[]): void {
    const lines = calls.flatMap((call) => (call === undefined ? [] : [call.line]));
    this.violations.push({ rule: this.#rule, host: this.#history.nameOf(host), at, detail, lines });
  }
}
