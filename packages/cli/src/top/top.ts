import { ServiceCallError, unavailable } from "../call-service.ts";
import type { FlagsOf } from "../commands/command.ts";
import { TOP } from "../commands/operating.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { running, wrongUsage } from "../read-flags.ts";
import { addressOf, operatorHeaders } from "../service-flags.ts";
import { totalsText } from "./draw.ts";
import { hostLines } from "./draw-hosts.ts";
import { ServiceReader, type Snapshot } from "./read-service.ts";
import { TopRun } from "./run-top.ts";
import { FIRST_MODEL } from "./top-model.ts";

const PIPED_WIDTH = 120;

export const top = running(TOP, async (flags) => {
  if (flags.local === true) return topLocally(flags);
  if (flags.dashboard === true) return wrongUsage("--dashboard needs --local: a service has its own address.", TOP);
  return show(flags);
});

/** Shows the keeper of this machine, as a service at an address that only this command knows. */
async function topLocally(flags: FlagsOf<typeof TOP>): Promise<ExitCode> {
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

async function show(flags: FlagsOf<typeof TOP>): Promise<ExitCode> {
  const isJson = flags.json === true;
  try {
    const reader = new ServiceReader(addressOf(flags.url), operatorHeaders(flags["internal-token"]));
    const everyMs = milliseconds(flags.interval ?? "1");
    const isLive = process.stdout.isTTY && process.stdin.isTTY && process.env["TERM"] !== "dumb" && !isJson;
    if (!isLive) return await printOnce(reader, isJson);
    return await new TopRun(reader, everyMs, process.env["NO_COLOR"] === undefined).run();
  } catch (error) {
    if (error instanceof TypeError) return wrongUsage(error.message, TOP);
    throw error;
  }
}

function milliseconds(interval: string): number {
  const seconds = Number(interval);
  if (seconds >= 0.1 && seconds <= 3600) return seconds * 1000;
  throw new TypeError(`Expected --interval to be 0.1 to 3600 seconds, got ${JSON.stringify(interval)}.`);
}

async function printOnce(reader: ServiceReader, isJson: boolean): Promise<ExitCode> {
  try {
    const snapshot = await reader.read(undefined);
    process.stdout.write(
      isJson ? `${JSON.stringify({ ...snapshot.state, history: snapshot.history })}\n` : plainText(snapshot),
    );
    return EXIT.ok;
  } catch (error) {
    const call = error instanceof ServiceCallError ? error : undefined;
    process.stderr.write(`${call?.message ?? unavailable(reader.url, error)}\n`);
    return call?.code === "REFUSED" ? EXIT.refused : EXIT.unreachable;
  }
}

function plainText(snapshot: Snapshot): string {
  const model = { ...FIRST_MODEL, snapshot };
  const table = hostLines(model, PIPED_WIDTH, Number.POSITIVE_INFINITY).map(({ text }) => text.trimEnd());
  return `${totalsText(snapshot)}\n\n${table.join("\n")}\n`;
}
