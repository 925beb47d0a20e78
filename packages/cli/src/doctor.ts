import { type Diagnosis, diagnose } from "@slotkeeper/server";
import { emptyFlags, sourcesOf } from "./config-sources.ts";
import { renderDiagnosis } from "./doctor-view.ts";
import { EXIT, type ExitCode, exitHelp } from "./exit-codes.ts";
import { readFlags, wrongUsage } from "./read-flags.ts";

const HELP = `slotkeeper doctor: looks for what keeps a service from working, and says how to fix it.

Usage
  slotkeeper doctor [-c config.json] [--data FILE] [--listen ADDRESS] [--json]

Options
  -c, --config FILE   the configuration that the service uses; without one: the embedded default
      --data FILE     the journal, as for serve
      --listen ADDR   the address, as for serve
      --json          for machines: docs/reference/doctor.md
  -h, --help          this

It looks at the configuration, the address, keys and limits; with a journal, at its file; with PostgreSQL, at the server's
version, the schema, permissions, notifications, the clocks, and at the instances that run. It changes nothing and can run
beside the service. Run it as the user, and with the environment, that the service has. No secret is printed.

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

/** Where the reader is no terminal. */
const PIPED_COLUMNS = 100;

export async function doctorCommand(args: readonly string[]): Promise<ExitCode> {
  const flags = readFlags(args, OPTIONS, HELP);
  if (typeof flags === "number") return flags;
  const empty = emptyFlags(flags);
  if (empty !== undefined) return wrongUsage(empty, HELP);
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
