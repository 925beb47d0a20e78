import { unavailable } from "../call-service.ts";
import { mustBeCarried } from "../carried.ts";
import { EXIT, type ExitCode, exitHelp } from "../exit-codes.ts";
import { LOCAL_HELP, LOCAL_OPTIONS } from "../local/local-flags.ts";
import { readFlags, wrongUsage } from "../read-flags.ts";
import { addressOf, OPERATOR_HELP, OPERATOR_OPTIONS, operatorHeaders } from "../service-flags.ts";
import { totalsText } from "./draw.ts";
import { hostLines } from "./draw-hosts.ts";
import { RefusedError, ServiceReader, type Snapshot } from "./read-service.ts";
import { TopRun } from "./run-top.ts";
import { FIRST_MODEL } from "./top-model.ts";

const HELP = `slotkeeper top: shows hosts, slots, queues and waits of a running service, live.

Usage
  slotkeeper top [--url URL] [--interval SECONDS] [--json]
  slotkeeper top --local [--dashboard] [--socket PATH]

Options
${OPERATOR_HELP}
${LOCAL_HELP}
      --dashboard     with --local: open an address for a browser, and show it with its key
      --interval S    seconds between two readings; default 1
      --json          print the state once, as JSON
  -h, --help          show this text

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
  slotkeeper top --local

${exitHelp(["ok", "usage", "unreachable", "refused"])}`;

const OPTIONS = {
  ...OPERATOR_OPTIONS,
  ...LOCAL_OPTIONS,
  interval: { type: "string" },
  dashboard: { type: "boolean" },
} as const;

const PIPED_WIDTH = 120;

export async function top(args: readonly string[]): Promise<ExitCode> {
  const flags = readFlags(args, OPTIONS, HELP);
  if (typeof flags === "number") return flags;
  if (flags.local === true) return topLocally(flags);
  if (flags.dashboard === true) return wrongUsage("--dashboard needs --local: a service has its own address.", HELP);
  return show(flags);
}

type Flags = {
  readonly [flag in "url" | "internal-token" | "interval" | "socket"]?: string | undefined;
} & { readonly [flag in "json" | "dashboard"]?: boolean | undefined };

/** Shows the keeper of this machine, as a service at an address that only this command knows. */
async function topLocally(flags: Flags): Promise<ExitCode> {
  const { forwardToKeeper } = await import("../local/forward.ts");
  const { runningKeeper } = await import("../local/running-keeper.ts");
  if ((await runningKeeper(flags.socket)) === undefined) {
    process.stderr.write("No keeper runs: no command holds a slot of this machine or waits for one.\n");
    return EXIT.unreachable;
  }
  const { url, token, close } = await forwardToKeeper(flags.socket);
  try {
    if (flags.dashboard !== true) return await show({ ...flags, url, "internal-token": token });
    process.stdout.write(`dashboard  ${url}/\nkey        ${token}\nCtrl+C closes it.\n`);
    await new Promise((resolve) => process.once("SIGINT", resolve).once("SIGTERM", resolve));
    return EXIT.ok;
  } finally {
    close();
  }
}

async function show(flags: Flags): Promise<ExitCode> {
  const isJson = flags.json === true;
  try {
    const reader = readerOf(flags);
    const everyMs = milliseconds(flags.interval ?? "1");
    const isLive = process.stdout.isTTY && process.stdin.isTTY && process.env["TERM"] !== "dumb" && !isJson;
    if (!isLive) return await printOnce(reader, isJson);
    return await new TopRun(reader, everyMs, process.env["NO_COLOR"] === undefined).run();
  } catch (error) {
    if (error instanceof TypeError) return wrongUsage(error.message, HELP);
    throw error;
  }
}

/** Throws a `TypeError` if the address or the token is invalid. */
function readerOf(flags: Flags): ServiceReader {
  const url = addressOf(flags.url);
  mustBeCarried({ url });
  return new ServiceReader(url, operatorHeaders(flags["internal-token"]));
}

function milliseconds(interval: string): number {
  const seconds = Number(interval);
  if (seconds >= 0.1 && seconds <= 3600) return seconds * 1000;
  throw new TypeError(`Expected --interval to be 0.1 to 3600 seconds, got ${JSON.stringify(interval)}.`);
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
    process.stderr.write(`${isRefused ? error.message : unavailable(reader.url, error)}\n`);
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
