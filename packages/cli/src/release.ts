import { callService } from "./call-service.ts";
import { RELEASE } from "./commands/calling.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { readArguments, wrongUsage } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { sharedKeyHeaders } from "./service-flags.ts";

export async function releaseCommand(args: readonly string[]): Promise<ExitCode> {
  const read = await readArguments(args, RELEASE);
  if (typeof read === "number") return read;
  const {
    values: flags,
    words: [slotToken],
  } = read;
  const { status, url } = flags;
  const problem = statusProblem(status);
  if (problem !== undefined) return wrongUsage(problem, RELEASE);
  try {
    const body = JSON.stringify({ slotToken, ...(status !== undefined && { status: Number(status) }) });
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

function statusProblem(status: string | undefined): string | undefined {
  if (status === undefined || /^[1-5]\d\d$/.test(status)) return undefined;
  return `Expected --status to be an HTTP status, got "${status}".`;
}
