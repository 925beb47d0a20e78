/**
 * Runs a command while a slot is held.
 *
 * EXEC1  The command starts only with a slot. The slot is released after the command has ended, for any reason.
 * EXEC2  Signals to this process go to the command. Before the command runs, they end the wait and leave the queue.
 * EXEC3  If the lease is lost, the command gets SIGTERM, because another command may get the slot.
 */
import { spawn } from "node:child_process";
import type { ServiceSlot } from "@slotkeeper/client";
import { EXIT, exitHelp } from "./exit-codes.ts";
import { readFlags, wrongUsage } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { clientOf, SERVICE_HELP, SERVICE_OPTIONS } from "./service-flags.ts";
import { exitOf, Signals } from "./signals.ts";
import { acquireBy, WAIT_HELP, WAIT_OPTIONS, type WaitFlags, waitProblems } from "./wait-flags.ts";

/** The exit code that a shell uses for a command that cannot start. */
const CANNOT_START = 127;

const HELP = `slotkeeper exec: holds a slot while a command runs.

Usage
  slotkeeper exec --url URL --host NAME [--bucket NAME | --max N] [--timeout S] -- command [arguments]

Options
${WAIT_HELP}
${SERVICE_HELP}
      --json          print failures of the service as JSON, on standard error
  -h, --help          show this text

The slot is renewed while the command runs, and released when it ends. SIGINT, SIGTERM and SIGHUP are passed to the command.

Examples
  slotkeeper exec --url http://slots:8080 --host nightly-jobs --max 2 -- ./backup.sh
  slotkeeper exec --url http://slots:8080 --host api.example.com --bucket cron --timeout 600 -- curl https://api.example.com/

${exitHelp(["usage", "noSlot", "unreachable", "refused", "lost"])}  otherwise the exit code of the command: 128 + n if signal n ended it, ${CANNOT_START} if it could not be started
`;

export async function execCommand(args: readonly string[]): Promise<number> {
  const at = args.indexOf("--");
  const flags = readFlags(at < 0 ? args : args.slice(0, at), { ...SERVICE_OPTIONS, ...WAIT_OPTIONS }, HELP);
  if (typeof flags === "number") return flags;
  const command = at < 0 ? [] : args.slice(at + 1);
  const problems = [
    waitProblems(flags),
    flags.url === undefined ? "--url is required." : undefined,
    command.length === 0 ? "Expected a command after `--`." : undefined,
  ].filter((problem) => problem !== undefined);
  if (problems.length > 0) return wrongUsage(problems.join("\n"), HELP);
  const signals = new Signals();
  try {
    return await run(flags, command, signals);
  } catch (error) {
    return signals.received === undefined ? serviceFailure(error, flags.json === true) : exitOf(signals.received);
  } finally {
    signals.close();
  }
}

type Flags = WaitFlags & Parameters<typeof clientOf>[0];

async function run(flags: Flags, command: readonly string[], signals: Signals): Promise<number> {
  const slot = await acquireBy(clientOf(flags), flags, signals.waiting);
  try {
    return await ended(slot, command, signals);
  } finally {
    await slot.release();
  }
}

function ended(slot: ServiceSlot, [file = "", ...args]: readonly string[], signals: Signals): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: "inherit" });
    signals.child = child;
    const onLost = () => {
      process.stderr.write(`${(slot.signal.reason as Error).message} The command gets SIGTERM.\n`);
      child.kill("SIGTERM");
    };
    slot.signal.addEventListener("abort", onLost);
    child.on("error", ({ message }) => {
      process.stderr.write(`Cannot start the command: ${message}\n`);
      resolve(CANNOT_START);
    });
    child.on("exit", (code, signal) =>
      resolve(slot.signal.aborted ? EXIT.lost : (code ?? exitOf(signal ?? "SIGTERM"))),
    );
  });
}
