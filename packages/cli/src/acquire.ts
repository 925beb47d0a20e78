import { acquireOverService } from "./acquire-over-service.ts";
import { EXIT, exitHelp } from "./exit-codes.ts";
import { readFlags, wrongUsage } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { SERVICE_HELP, SERVICE_OPTIONS } from "./service-flags.ts";
import { exitOf, Signals } from "./signals.ts";
import { WAIT_HELP, WAIT_OPTIONS, waitProblems } from "./wait-flags.ts";

const HELP = `slotkeeper acquire: waits for a slot and prints its token.

Usage
  slotkeeper acquire --host NAME [--bucket NAME | --max N] [--timeout S] [--url URL] [--json]

Options
${WAIT_HELP}
${SERVICE_HELP}
      --json          print token, fence and lease as JSON
  -h, --help          show this text

The slot is lost when its lease ends (30 s unless configured otherwise). For longer work use \`slotkeeper exec\`, which renews it.

Examples
  slot=$(slotkeeper acquire --host api.example.com --bucket me) && curl https://api.example.com/; slotkeeper release "$slot"
  slotkeeper acquire --host nightly-jobs --max 2 --timeout 60 --json

${exitHelp(["ok", "usage", "noSlot", "unreachable", "refused"])}  otherwise 128 + n, if signal n ended the wait
`;

export async function acquireCommand(args: readonly string[]): Promise<number> {
  const flags = readFlags(args, { ...SERVICE_OPTIONS, ...WAIT_OPTIONS }, HELP);
  if (typeof flags === "number") return flags;
  const isJson = flags.json === true;
  const problems = waitProblems(flags);
  if (problems !== undefined) return wrongUsage(problems, HELP);
  const signals = new Signals();
  try {
    const { token, fence, expiresAt } = await acquireOverService(flags, signals.waiting);
    process.stdout.write(isJson ? `${JSON.stringify({ slotToken: token, fence, expiresAt })}\n` : `${token}\n`);
    return EXIT.ok;
  } catch (error) {
    return signals.received === undefined ? serviceFailure(error, isJson) : exitOf(signals.received);
  } finally {
    signals.close();
  }
}
