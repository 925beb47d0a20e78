import { callService } from "./call-service.ts";
import { EXIT, type ExitCode, exitHelp } from "./exit-codes.ts";
import { readFlags } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { SERVICE_HELP, SERVICE_OPTIONS, sharedKeyHeaders } from "./service-flags.ts";

const HELP = `slotkeeper release: gives a slot back.

Usage
  slotkeeper release TOKEN [--status CODE] [--url URL] [--json]

Options
      --status CODE   the upstream's HTTP status, for the circuit breaker
${SERVICE_HELP}
      --json          for machines
  -h, --help          this

Releasing twice, late, or with an unknown token is not a failure: it frees no other slot.

Examples
  slotkeeper release "$slot"
  slotkeeper release "$slot" --status 503

${exitHelp(["ok", "usage", "unreachable", "refused"])}`;

export async function releaseCommand(args: readonly string[]): Promise<ExitCode> {
  const [first = ""] = args;
  const hasToken = first !== "" && !first.startsWith("-");
  const flags = readFlags(hasToken ? args.slice(1) : args, { ...SERVICE_OPTIONS, status: { type: "string" } }, HELP);
  if (typeof flags === "number") return flags;
  const { status, url } = flags;
  const isStatus = status === undefined || /^[1-5]\d\d$/.test(status);
  if (!hasToken || !isStatus) {
    const problem = hasToken
      ? `Expected --status to be an HTTP status, got "${status}".`
      : "Which slot? Give its token.";
    process.stderr.write(`${problem}\n\n${HELP}`);
    return EXIT.usage;
  }
  try {
    const body = JSON.stringify({ slotToken: first, ...(status !== undefined && { status: Number(status) }) });
    const headers = { "content-type": "application/json", ...sharedKeyHeaders(flags) };
    await callService(url, "/api/v0/fairqueue/release", { method: "POST", headers, body });
    process.stdout.write(flags.json === true ? '{"result":"ok"}\n' : "released\n");
    return EXIT.ok;
  } catch (error) {
    return serviceFailure(error, flags.json === true);
  }
}
