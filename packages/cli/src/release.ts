import { callService } from "./call-service.ts";
import { EXIT, type ExitCode, exitHelp } from "./exit-codes.ts";
import { readArguments, wrongUsage } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { SERVICE_HELP, SERVICE_OPTIONS, sharedKeyHeaders } from "./service-flags.ts";

const HELP = `slotkeeper release: gives a slot back.

Usage
  slotkeeper release TOKEN [--status CODE] [--url URL] [--json]

Options
      --status CODE   the upstream's HTTP status, for the circuit breaker
${SERVICE_HELP}
      --json          print JSON
  -h, --help          show this text

A token that holds no slot releases nothing, and no other slot. If the service knows that at once, the exit code is 1.

Examples
  slotkeeper release "$slot"
  slotkeeper release --url http://slots:8080 --status 503 -- "$slot"

${exitHelp(["ok", "failed", "usage", "unreachable", "refused"])}`;

export async function releaseCommand(args: readonly string[]): Promise<ExitCode> {
  const read = readArguments(args, { ...SERVICE_OPTIONS, status: { type: "string" } }, HELP);
  if (typeof read === "number") return read;
  const { values: flags, positionals: tokens } = read;
  const { status, url } = flags;
  const problem = tokenProblem(tokens) ?? statusProblem(status);
  if (problem !== undefined) return wrongUsage(problem, HELP);
  try {
    const body = JSON.stringify({ slotToken: tokens[0], ...(status !== undefined && { status: Number(status) }) });
    const headers = { "content-type": "application/json", ...sharedKeyHeaders(flags) };
    const answer = await callService(url, "/api/v0/fairqueue/release", { method: "POST", headers, body });
    return report((answer as ReleaseAnswer).released !== false, flags.json === true);
  } catch (error) {
    return serviceFailure(error, flags.json === true);
  }
}

/** The service adds `released: false` if it knows at once that the token holds no slot. */
interface ReleaseAnswer {
  readonly released?: boolean;
}

function report(isReleased: boolean, isJson: boolean): ExitCode {
  if (isJson) process.stdout.write(`${JSON.stringify({ result: "ok", ...(isReleased ? {} : { released: false }) })}\n`);
  else if (isReleased) process.stdout.write("released\n");
  else process.stderr.write("Nothing was released: this token holds no slot. It is wrong, or its slot has ended.\n");
  return isReleased ? EXIT.ok : EXIT.failed;
}

function tokenProblem(tokens: readonly string[]): string | undefined {
  if (tokens.length === 0) return "Expected the token of a slot.";
  if (tokens.length > 1) return `Expected one token, got ${tokens.length}.`;
  return tokens[0] === "" ? "The token is empty: perhaps a variable is not set." : undefined;
}

function statusProblem(status: string | undefined): string | undefined {
  if (status === undefined || /^[1-5]\d\d$/.test(status)) return undefined;
  return `Expected --status to be an HTTP status, got "${status}".`;
}
