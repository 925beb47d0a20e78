import { CHECKS, type Diagnosis, diagnose, type Finding, type Severity } from "@slotkeeper/server";
import { wrapped } from "./commands/command.ts";
import { DOCTOR } from "./commands/serving.ts";
import { sourcesOf } from "./config-sources.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { running } from "./read-flags.ts";

const EXIT_OF: { readonly [severity in Severity]: ExitCode } = {
  ok: EXIT.ok,
  warning: EXIT.warnings,
  problem: EXIT.problems,
};

/** The width if the output is not a terminal. */
const PIPED_COLUMNS = 100;

export const doctorCommand = running(DOCTOR, async (flags) => {
  const diagnosis = await diagnose(sourcesOf(flags));
  const { isTTY: isTerminal, columns } = process.stdout;
  const hasColours = isTerminal && process.env["NO_COLOR"] === undefined;
  process.stdout.write(
    flags.json === true
      ? `${JSON.stringify(diagnosis)}\n`
      : renderDiagnosis(diagnosis, { columns: isTerminal ? columns : PIPED_COLUMNS, hasColours }),
  );
  return EXIT_OF[diagnosis.severity];
});

interface ViewOptions {
  readonly columns: number;
  readonly hasColours: boolean;
}

type Paint = (text: string) => string;

const MARKS: { readonly [severity in Severity]: string } = { ok: "✓", warning: "!", problem: "✗" };
const COLOURS: { readonly [severity in Severity]: number } = { ok: 32, warning: 33, problem: 31 };
const WIDEST = 110;
const NARROWEST = 50;
/** The mark, the name of the check, and the spaces around them. */
const INDENT = 4 + Math.max(...CHECKS.map((check) => check.length)) + 2;
const LABELS = { why: "why  ", fix: "fix  " } as const;

/**
 * Text for people: one line for each check that passed; for each finding, what was found, why it matters, and how to
 * fix it.
 */
function renderDiagnosis(diagnosis: Diagnosis, { columns, hasColours }: ViewOptions): string {
  const width = Math.max(NARROWEST, Math.min(columns, WIDEST));
  const painted =
    (code: number): Paint =>
    (text) =>
      hasColours ? `\u001b[${code}m${text}\u001b[0m` : text;
  const [bold, dim] = [painted(1), painted(2)];
  const { version, config, store, findings, skipped } = diagnosis;
  const title = [`${bold("slotkeeper doctor")} ${version}`, config, store].filter((part) => part !== undefined);
  const lines = findings.flatMap((finding, at) => {
    const isAgain = findings[at - 1]?.check === finding.check;
    return block(finding, isAgain, width, painted(COLOURS[finding.severity]), dim);
  });
  const unasked = skipped.map((check) =>
    dim(`  – ${check.padEnd(INDENT - 4)}not checked: fix the problems above first`),
  );
  return `${title.join(dim(" · "))}\n\n${[...lines, ...unasked].join("\n").trimEnd()}\n\n${summary(diagnosis, painted)}\n`;
}

function block(
  { check, severity, found, why, fix }: Finding,
  isAgain: boolean,
  width: number,
  paint: Paint,
  dim: Paint,
) {
  const name = (isAgain ? "" : check).padEnd(INDENT - 4);
  const [first = "", ...rest] = wrapped(found, width - INDENT);
  const lines = [
    `  ${paint(MARKS[severity])} ${severity === "ok" ? name : paint(name)}${first}`,
    ...indented(rest, INDENT),
  ];
  for (const [label, text] of [
    [LABELS.why, why],
    [LABELS.fix, fix],
  ] as const) {
    if (text === undefined) continue;
    const [head = "", ...tail] = wrapped(text, width - INDENT - label.length);
    lines.push(`${" ".repeat(INDENT)}${dim(label)}${head}`, ...indented(tail, INDENT + label.length));
  }
  return severity === "ok" ? lines : [...lines, ""];
}

function indented(lines: readonly string[], by: number): string[] {
  return lines.map((line) => `${" ".repeat(by)}${line}`);
}

function summary({ findings }: Diagnosis, painted: (code: number) => Paint): string {
  const count = (severity: Severity) => findings.filter((finding) => finding.severity === severity).length;
  const [problems, warnings] = [count("problem"), count("warning")];
  if (problems + warnings === 0) return painted(COLOURS.ok)("Nothing to report.");
  const parts = [plural(problems, "problem"), plural(warnings, "warning")].filter((part) => part !== undefined);
  return painted(problems > 0 ? COLOURS.problem : COLOURS.warning)(`${parts.join(", ")}.`);
}

function plural(count: number, noun: string): string | undefined {
  if (count === 0) return undefined;
  return count === 1 ? `1 ${noun}` : `${count} ${noun}s`;
}
