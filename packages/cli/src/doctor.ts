import { type Diagnosis, diagnose } from "@slotkeeper/server";
import { sourcesOf } from "./config-sources.ts";
import { renderDiagnosis } from "./doctor-view.ts";
import { EXIT, type ExitCode, exitHelp } from "./exit-codes.ts";
import { readFlags } from "./read-flags.ts";

const HELP = `slotkeeper doctor: finds out why a service does not work, and how to fix it.

Usage
  slotkeeper doctor [-c config.json] [--data FILE] [--listen ADDRESS] [--json]

Options
  -c, --config FILE   configuration file of the service; without one, the defaults
      --data FILE     the journal, as for serve
      --listen ADDR   the address, as for serve
      --json          print JSON: see docs/reference/doctor.md
  -h, --help          show this text

It checks the configuration, the address, the service that runs there, the keys and the limits. With a journal it checks the file; with PostgreSQL the
version of the server, the schema, permissions, notifications, the clocks and the running instances. It changes nothing,
prints no secret, and can run beside the service. Run it as the user of the service, with the same environment.

Examples
  slotkeeper doctor -c config.json
  slotkeeper doctor --data /var/lib/slotkeeper/journal
  slotkeeper doctor -c config.json --json | jq -r '.findings[] | select(.severity != "ok") | .fix'

${exitHelp(["ok", "usage", "warnings", "problems"])}`;

const OPTIONS = {
  config: { type: "string", short: "c" },
  data: { type: "string" },
  listen: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

const EXIT_OF: { readonly [severity in Diagnosis["severity"]]: ExitCode } = {
  ok: EXIT.ok,
  warning: EXIT.warnings,
  problem: EXIT.problems,
};

/** The width if the output is not a terminal. */
const PIPED_COLUMNS = 100;

export async function doctorCommand(args: readonly string[]): Promise<ExitCode> {
  const flags = readFlags(args, OPTIONS, HELP);
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
