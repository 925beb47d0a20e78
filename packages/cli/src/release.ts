import { callService } from "./call-service.ts";
import { RELEASE } from "./commands/calling.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { running, wrongUsage } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { sharedKey } from "./service-flags.ts";
import { amountProblems, amountsOf, joined } from "./wait-flags.ts";

export const releaseCommand = running(RELEASE, async (flags, [slotToken]) => {
  const { status, used, url } = flags;
  const problems = joined([statusProblem(status), ...amountProblems("--used", used)]);
  if (problems !== undefined) return wrongUsage(problems, RELEASE);
  try {
    const reported = { used: amountsOf(used), ...(status !== undefined && { status: Number(status) }) };
    const body = JSON.stringify({ slotToken, ...reported });
    const { header, token } = sharedKey(flags);
    const headers = { "content-type": "application/json", ...(token !== undefined && { [header]: token }) };
    const answer = await callService(url, "/api/v0/fairqueue/release", { method: "POST", headers, body });
    return report(answer as ReleaseAnswer, flags.json === true);
  } catch (error) {
    return serviceFailure(error, flags.json === true);
  }
});

interface ReleaseAnswer {
  /** False if the service knows at once that the token holds no slot. */
  readonly released?: boolean;
  /** What the service ignored because it is invalid. */
  readonly ignored?: readonly string[];
}

function report(answer: ReleaseAnswer, isJson: boolean): ExitCode {
  const { released: isReleased = true, ignored = [] } = answer;
  if (ignored.length > 0) process.stderr.write(`The service ignored ${ignored.join(", ")}: no such charge.\n`);
  if (isJson) process.stdout.write(`${JSON.stringify(answer)}\n`);
  else if (isReleased) process.stdout.write("released\n");
  else process.stderr.write("Nothing was released: this token holds no slot. It is wrong, or its slot has ended.\n");
  return isReleased ? EXIT.ok : EXIT.failed;
}

function statusProblem(status: string | undefined): string | undefined {
  if (status === undefined || /^[1-5]\d\d$/.test(status)) return undefined;
  return `Expected --status to be an HTTP status, got "${status}".`;
}
