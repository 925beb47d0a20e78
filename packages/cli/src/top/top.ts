import { mustBeCarried } from "../carried.ts";
import { EXIT, type ExitCode, exitHelp } from "../exit-codes.ts";
import { readFlags, wrongUsage } from "../read-flags.ts";
import { DEFAULT_URL, internalToken } from "../service-flags.ts";
import { totalsText } from "./draw.ts";
import { hostLines } from "./draw-hosts.ts";
import { RefusedError, ServiceReader, type Snapshot } from "./read-service.ts";
import { TopRun } from "./run-top.ts";
import { FIRST_MODEL } from "./top-model.ts";

const HELP = `slotkeeper top: shows hosts, slots, queues and waits of a running service, live.

Usage
  slotkeeper top [--url URL] [--token TOKEN] [--interval SECONDS] [--json]

Options
      --url URL        address of the service; default ${DEFAULT_URL}
      --token TOKEN    its internalApiToken; better set SLOTKEEPER_INTERNAL_API_TOKEN, which other users cannot see in the process list
      --interval S     seconds between two readings; default 1
      --json           print the state once, as JSON
  -h, --help           show this text

Keys
  ↑ ↓ PgUp PgDn   choose a host          Enter   open it: slots, holders, queue, why each waits
  s or 1 to 6     sort by another column  r       reverse
  /               search                  Esc     back
  q               quit

Without a terminal it prints the table once, without colours, and exits.

Examples
  slotkeeper top
  slotkeeper top --url https://slots.internal:8080
  slotkeeper top | head -20
  slotkeeper top --json

${exitHelp(["ok", "usage", "unreachable", "refused"])}`;

const OPTIONS = {
  url: { type: "string" },
  token: { type: "string" },
  interval: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

const PIPED_WIDTH = 120;

export async function top(args: readonly string[]): Promise<ExitCode> {
  const flags = readFlags(args, OPTIONS, HELP);
  if (typeof flags === "number") return flags;
  const { url = DEFAULT_URL, interval = "1" } = flags;
  const token = internalToken(flags.token);
  const seconds = Number(interval);
  const problem = serviceProblem(url, token) ?? intervalProblem(seconds, interval);
  if (problem !== undefined) return wrongUsage(problem, HELP);
  const reader = new ServiceReader(url, token);
  const isLive = process.stdout.isTTY && process.stdin.isTTY && process.env["TERM"] !== "dumb" && flags.json !== true;
  if (!isLive) return printOnce(reader, flags.json === true);
  return new TopRun(reader, seconds * 1000, process.env["NO_COLOR"] === undefined).run();
}

function serviceProblem(url: string, token: string | undefined): string | undefined {
  try {
    mustBeCarried({ url, token });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function intervalProblem(seconds: number, text: string): string | undefined {
  if (seconds >= 0.1 && seconds <= 3600) return undefined;
  return `Expected --interval to be 0.1 to 3600 seconds, got ${JSON.stringify(text)}`;
}

async function printOnce(reader: ServiceReader, isJson: boolean): Promise<ExitCode> {
  try {
    const snapshot = await reader.read(undefined);
    process.stdout.write(isJson ? `${JSON.stringify(jsonOf(snapshot))}\n` : plainText(snapshot));
    return EXIT.ok;
  } catch (error) {
    const isRefused = error instanceof RefusedError;
    // As in `status`, a service that fails counts as unreachable.
    const isUnreachable = !isRefused || error.status >= 500;
    process.stderr.write(`${isRefused ? error.message : `No service answers at ${reader.url}.`}\n`);
    return isUnreachable ? EXIT.unreachable : EXIT.refused;
  }
}

function jsonOf({ state, history }: Snapshot): object {
  return { ...state, history };
}

function plainText(snapshot: Snapshot): string {
  const model = { ...FIRST_MODEL, snapshot };
  const table = hostLines(model, PIPED_WIDTH, Number.POSITIVE_INFINITY).map(({ text }) => text.trimEnd());
  return `${totalsText(snapshot)}\n\n${table.join("\n")}\n`;
}
