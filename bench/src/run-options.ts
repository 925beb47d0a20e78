/** The command-line options that the benchmarks share. */
import { parseArgs } from "node:util";
import { roundsOf } from "./rounds.ts";

/** With fewer rounds, a median is not worth printing. */
const LEAST_ROUNDS = 5;

export interface RunOptions {
  readonly isShort: boolean;
  readonly rounds: number;
  /** The ids of rows; `undefined` for all. */
  readonly only: readonly string[] | undefined;
  readonly json: string | undefined;
  /** A report of `--json` that is shown, judged and written without measuring. */
  readonly from: string | undefined;
  /** A report of `--json` that is continued: its rounds count, and only missing ones are measured. */
  readonly continued: string | undefined;
  readonly writesDocs: boolean;
  /** Whether missed goals are errors. By default they are not, because a benchmark is not a test. */
  readonly isStrict: boolean;
}

/** The program that reads the command line. */
export interface Runner {
  /** The command as a person types it. */
  readonly command: string;
  /** The rows that `--only` accepts. */
  readonly rows: readonly string[];
  /** Whether a report can be continued. */
  readonly continues?: boolean;
}

const FLAGS = {
  help: { type: "boolean", default: false },
  short: { type: "boolean", default: false },
  rounds: { type: "string" },
  only: { type: "string" },
  json: { type: "string" },
  from: { type: "string" },
  continue: { type: "string" },
  "write-docs": { type: "boolean", default: false },
  strict: { type: "boolean", default: false },
} as const;

function usageOf({ command, rows, continues }: Runner): string {
  return `Usage: ${command} -- [options]

  --only ROWS     these rows, with commas between them: ${rows.join(", ")}
  --rounds N      number of rounds (${LEAST_ROUNDS}; in short mode 1)
  --short         a smoke run, not a measurement
  --json FILE     keeps the report
  --from FILE     shows a report that --json has kept, without measuring${continues ? "\n  --continue FILE measures the rounds that such a report lacks, in as many sittings as it takes" : ""}
  --write-docs    writes this part of docs/reference/benchmarks.md
  --strict        a missed goal is an error
  --help          shows this`;
}

/** Ends the process if there is nothing to run: after `--help`, and with code 2 after an invalid command line. */
export function runOptions(runner: Runner, args: readonly string[] = process.argv.slice(2)): RunOptions {
  try {
    const options = parsed(runner, args);
    if (options !== undefined) return options;
    console.log(usageOf(runner));
    process.exit(0);
  } catch (error) {
    // Node adds advice to its first sentence that does not fit this command.
    const [problem] = error instanceof Error ? error.message.split(". ") : [String(error)];
    console.error(`${problem} (${runner.command} -- --help lists the options)`);
    process.exit(2);
  }
}

/** Returns `undefined` if help is requested. */
function parsed({ rows, continues }: Runner, args: readonly string[]): RunOptions | undefined {
  const { values } = parseArgs({ args: [...args], options: FLAGS });
  if (values.help) return undefined;
  if (values.continue !== undefined && !continues) throw new RangeError("These reports cannot be continued");
  const only = values.only?.split(",");
  const unknown = only?.filter((id) => !rows.includes(id)) ?? [];
  if (unknown.length > 0) {
    throw new RangeError(`Expected --only to name rows of ${rows.join(", ")}; got ${unknown.join(", ")}`);
  }
  return {
    isShort: values.short,
    rounds: roundsOf(values.rounds, values.short, LEAST_ROUNDS),
    only,
    json: values.json,
    from: values.from,
    continued: values.continue,
    writesDocs: values["write-docs"],
    isStrict: values.strict,
  };
}

/** Refuses to write a page that is not a full measurement of all rows. */
export function expectWhole(report: { isShort: boolean; rounds: number }, measured: number, all: number): void {
  if (!report.isShort && report.rounds >= LEAST_ROUNDS && measured >= all) return;
  throw new RangeError(`Expected all rows, full mode and ${LEAST_ROUNDS} rounds or more for --write-docs.`);
}
