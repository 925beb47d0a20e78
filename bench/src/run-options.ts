/** The command line that the benchmarks share, and what it means. */
import { parseArgs } from "node:util";

/** Fewer rounds than this make no median worth printing. */
const LEAST_ROUNDS = 5;

export interface RunOptions {
  readonly isShort: boolean;
  readonly rounds: number;
  /** Ids of rows; undefined: all. */
  readonly only: readonly string[] | undefined;
  readonly json: string | undefined;
  /** A report that `--json` has kept: shown, judged and written without measuring. */
  readonly from: string | undefined;
  readonly writesDocs: boolean;
  /** Misses are errors: a benchmark is not a test unless it is asked to be one. */
  readonly isStrict: boolean;
}

export function runOptions(args: readonly string[] = process.argv.slice(2)): RunOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      short: { type: "boolean", default: false },
      rounds: { type: "string" },
      only: { type: "string" },
      json: { type: "string" },
      from: { type: "string" },
      "write-docs": { type: "boolean", default: false },
      strict: { type: "boolean", default: false },
    },
  });
  return {
    isShort: values.short,
    rounds: roundsOf(values.rounds, values.short),
    only: values.only?.split(","),
    json: values.json,
    from: values.from,
    writesDocs: values["write-docs"],
    isStrict: values.strict,
  };
}

function roundsOf(text: string | undefined, isShort: boolean): number {
  const rounds = Number(text ?? (isShort ? 1 : LEAST_ROUNDS));
  if (Number.isInteger(rounds) && rounds >= 1) return rounds;
  throw new RangeError(`Expected --rounds to be an integer of at least 1, got ${text}.`);
}

/** A page is about all rows, measured properly, or it is not written. */
export function expectWhole(report: { isShort: boolean; rounds: number }, measured: number, all: number): void {
  if (!report.isShort && report.rounds >= LEAST_ROUNDS && measured >= all) return;
  throw new RangeError(`Expected all rows, full mode and ${LEAST_ROUNDS} rounds or more for --write-docs.`);
}
