/**
 * Runs a command while a slot is held.
 *
 * EXEC1  The command starts only with a slot. The slot is released after the command has ended, for any reason.
 * EXEC2  Signals to this process go to the command. Before the command runs, they end the wait and leave the queue.
 * EXEC3  If the lease is lost, the command gets SIGTERM, because another command may get the slot.
 */
import { spawn } from "node:child_process";
import type { ServiceSlot } from "@slotkeeper/client";
import { systemWords } from "@slotkeeper/server/words";
import { acquireVisibly } from "./acquire-visibly.ts";
import { commandEnvironment } from "./command-environment.ts";
import { EXIT, exitHelp } from "./exit-codes.ts";
import { firstArgument, readFlags, wrongUsage } from "./read-flags.ts";
import { serviceFailure } from "./service-failure.ts";
import { clientOf, SERVICE_HELP, SERVICE_OPTIONS } from "./service-flags.ts";
import { exitOf, Signals } from "./signals.ts";
import { WAIT_HELP, WAIT_OPTIONS, type WaitFlags, waitProblems } from "./wait-flags.ts";

/** The exit code that a shell uses for a command that cannot start. */
const CANNOT_START = 127;

const HELP = `slotkeeper exec: holds a slot while a command runs.

Usage
  slotkeeper exec --host NAME [--bucket NAME | --max N] [--timeout S] [--url URL] -- command [arguments]

Options
${WAIT_HELP}
${SERVICE_HELP}
      --pass-token    leave the keys of the service in the environment of the command
      --json          print failures of the service as JSON, on standard error
  -h, --help          show this text

The slot is renewed while the command runs, and released when it ends. SIGINT, SIGTERM and SIGHUP are passed to the command.
Its environment has SLOTKEEPER_NAME and SLOTKEEPER_FENCE, and no key of the service.

Examples
  slotkeeper exec --host nightly-jobs --max 2 -- ./backup.sh
  slotkeeper exec --url http://slots:8080 --host api.example.com --bucket cron --timeout 600 -- curl https://api.example.com/

${exitHelp(["usage", "noSlot", "unreachable", "refused", "lost"])}  otherwise the exit code of the command: 128 + n if signal n ended it, ${CANNOT_START} if it could not be started
`;

const OPTIONS = { ...SERVICE_OPTIONS, ...WAIT_OPTIONS, "pass-token": { type: "boolean" } } as const;

export async function execCommand(args: readonly string[]): Promise<number> {
  const dashes = args.indexOf("--");
  const at = dashes < 0 ? firstArgument(args, OPTIONS) : dashes;
  const flags = readFlags(args.slice(0, at), OPTIONS, HELP);
  if (typeof flags === "number") return flags;
  const command = at === undefined ? [] : args.slice(dashes < 0 ? at : at + 1);
  const problems = [waitProblems(flags), commandProblem(args, dashes, command)].filter(
    (problem) => problem !== undefined,
  );
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

/** Without `--`, the command begins at the first argument that is not a flag. The line to type is shown. */
function commandProblem(args: readonly string[], dashes: number, command: readonly string[]): string | undefined {
  if (command.length === 0)
    return "Expected `--` and a command, for example: slotkeeper exec --host jobs -- ./backup.sh";
  if (dashes >= 0) return undefined;
  const line = [...args.slice(0, -command.length), "--", ...command].map(shellWord).join(" ");
  return `Expected \`--\` before the command: slotkeeper exec ${line}`;
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

type Flags = WaitFlags & Parameters<typeof clientOf>[0] & { readonly "pass-token"?: boolean | undefined };

async function run(flags: Flags, command: readonly string[], signals: Signals): Promise<number> {
  const slot = await acquireVisibly(clientOf(flags), flags, signals.waiting);
  const environment = commandEnvironment({ name: flags.host ?? "", fence: slot.fence }, flags["pass-token"] === true);
  try {
    return await ended(slot, command, environment, signals);
  } finally {
    await slot.release();
  }
}

function ended(
  slot: ServiceSlot,
  [file = "", ...args]: readonly string[],
  env: NodeJS.ProcessEnv,
  signals: Signals,
): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(file, args, { stdio: "inherit", env });
    signals.child = child;
    const onLost = () => {
      process.stderr.write(`${(slot.signal.reason as Error).message} The command gets SIGTERM.\n`);
      child.kill("SIGTERM");
    };
    slot.signal.addEventListener("abort", onLost);
    child.on("error", (error) => {
      process.stderr.write(`Cannot start the command ${JSON.stringify(file)}: ${systemWords(error)}.\n`);
      resolve(CANNOT_START);
    });
    child.on("exit", (code, signal) =>
      resolve(slot.signal.aborted ? EXIT.lost : (code ?? exitOf(signal ?? "SIGTERM"))),
    );
  });
}
