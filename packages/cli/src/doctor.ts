import { type Diagnosis, diagnose } from "@slotkeeper/server";
import { DOCTOR } from "./commands/serving.ts";
import { sourcesOf } from "./config-sources.ts";
import { renderDiagnosis } from "./doctor-view.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { readFlags } from "./read-flags.ts";

const EXIT_OF: { readonly [severity in Diagnosis["severity"]]: ExitCode } = {
  ok: EXIT.ok,
  warning: EXIT.warnings,
  problem: EXIT.problems,
};

/** The width if the output is not a terminal. */
const PIPED_COLUMNS = 100;

export async function doctorCommand(args: readonly string[]): Promise<ExitCode> {
  const flags = await readFlags(args, DOCTOR);
  if (typeof flags === "number") return flags;
  const diagnosis = await diagnose(sourcesOf(flags));
  const { isTTY: isTerminal, columns } = process.stdout;
  const hasColours = isTerminal && process.env["NO_COLOR"] === undefined;
  process.stdout.write(
    flags.json === true
      ? `${JSON.stringify(diagnosis)}\n`
      : renderDiagnosis(diagnosis, { columns: isTerminal ? columns : PIPED_COLUMNS, hasColours }),
  );
  return EXIT_OF[diagnosis.severity];
}
