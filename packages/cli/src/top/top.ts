import { unavailable } from "../call-service.ts";
import { mustBeCarried } from "../carried.ts";
import { TOP } from "../commands/operating.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { readFlags, wrongUsage } from "../read-flags.ts";
import { addressOf, operatorHeaders } from "../service-flags.ts";
import { totalsText } from "./draw.ts";
import { hostLines } from "./draw-hosts.ts";
import { RefusedError, ServiceReader, type Snapshot } from "./read-service.ts";
import { TopRun } from "./run-top.ts";
import { FIRST_MODEL } from "./top-model.ts";

const PIPED_WIDTH = 120;

export async function top(args: readonly string[]): Promise<ExitCode> {
  const flags = await readFlags(args, TOP);
  if (typeof flags === "number") return flags;
  if (flags.local === true) return topLocally(flags);
  if (flags.dashboard === true) return wrongUsage("--dashboard needs --local: a service has its own address.", TOP);
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
    process.stdout.write(
      `dashboard  ${url}/\nkey        ${token}\nThe page asks for it as internalApiToken. Ctrl+C closes it.\n`,
    );
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
    if (error instanceof TypeError) return wrongUsage(error.message, TOP);
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
