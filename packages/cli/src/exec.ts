/**
 * Runs a command while a slot is held.
 *
 * EXEC1  The command starts only with a slot. The slot is released after the command has ended, for any reason.
 * EXEC2  Signals to this process go to the command. Before the command runs, they end the wait and leave the queue.
 * EXEC3  If the lease is lost, the command gets SIGTERM, because another command may get the slot.
 */
import { CANNOT_START, exitHelp } from "./exit-codes.ts";
import type { LocalFlags } from "./local/exec-locally.ts";
import { firstArgument, readFlags, wrongUsage } from "./read-flags.ts";
import { SERVICE_HELP, SERVICE_OPTIONS, type ServiceFlags } from "./service-flags.ts";
import { exitOf, Signals } from "./signals.ts";
import { VARIABLES, variable } from "./variables.ts";
import {
  NAME_HELP,
  NAME_OPTIONS,
  nameProblems,
  WAIT_HELP,
  WAIT_OPTIONS,
  type WaitFlags,
  waitProblems,
} from "./wait-flags.ts";

const HELP = `slotkeeper exec: holds a slot while a command runs.

Usage
  slotkeeper exec --name NAME [--slots N] [--as GROUP] [--timeout S] [--url URL] -- command [arguments]
  slotkeeper exec --host NAME [--bucket NAME | --max N] [--timeout S] [--url URL] -- command [arguments]

Options
${NAME_HELP}
${WAIT_HELP}
${SERVICE_HELP}
      --pass-token    leave the keys of the service in the environment of the command
      --json          print failures as JSON, on standard error
  -h, --help          show this text

With --name and without --url and SLOTKEEPER_URL, the slots are those of this machine, for this user. No service is needed.
The slot lasts until the command has ended, and the processes that it left behind, even if this command is killed.
With a service, the slot is renewed while the command runs, and released when it ends.

SIGTERM and SIGHUP are passed to the command. SIGINT and SIGQUIT, too, unless the terminal has sent them to both.
Its environment has SLOTKEEPER_NAME, SLOTKEEPER_FENCE and, on one machine, SLOTKEEPER_SLOT (1 to N), and no key of a service.

Examples
  slotkeeper exec --name gpu -- python train.py
  slotkeeper exec --name build --slots 3 --as "$WORKTREE" -- cargo build
  slotkeeper exec --url http://slots:8080 --name nightly-jobs --slots 2 -- ./backup.sh
  slotkeeper exec --url http://slots:8080 --host api.example.com --bucket cron --timeout 600 -- curl https://api.example.com/

${exitHelp(["usage", "noSlot", "unreachable", "refused", "lost", "keeper"])}  otherwise the exit code of the command: 128 + n if signal n ended it, ${CANNOT_START} if it could not be started
`;

const OPTIONS = { ...SERVICE_OPTIONS, ...WAIT_OPTIONS, ...NAME_OPTIONS, "pass-token": { type: "boolean" } } as const;

export async function execCommand(args: readonly string[]): Promise<number> {
  const dashes = args.indexOf("--");
  const at = dashes < 0 ? firstArgument(args, OPTIONS) : dashes;
  const flags = readFlags(args.slice(0, at), OPTIONS, HELP);
  if (typeof flags === "number") return flags;
  const command = at === undefined ? [] : args.slice(dashes < 0 ? at : at + 1);
  const flagProblems = flags.name === undefined ? waitProblems(flags) : nameProblems(flags);
  const problems = [flagProblems, commandProblem(args, dashes, command)].filter((problem) => problem !== undefined);
  if (problems.length > 0) return wrongUsage(problems.join("\n"), HELP);
  const signals = new Signals();
  try {
    return await run(flags, command, signals);
  } catch (error) {
    if (signals.received !== undefined) return exitOf(signals.received);
    const { serviceFailure } = await import("./service-failure.ts");
    return serviceFailure(error, flags.json === true);
  } finally {
    signals.close();
  }
}

type Flags = WaitFlags & ServiceFlags & LocalFlags;

/** Each way loads only what it needs: a start takes as long as what it loads. */
async function run(flags: Flags, command: readonly string[], signals: Signals): Promise<number> {
  const { name, slots = "1", as: bucket } = flags;
  if (name === undefined) return (await import("./exec-over-service.ts")).execOverService(flags, command, signals);
  if (flags.url === undefined && variable(VARIABLES.url) === undefined) {
    return (await import("./local/exec-locally.ts")).execLocally(flags, command, signals);
  }
  const named = { ...flags, host: name, max: slots, bucket };
  return (await import("./exec-over-service.ts")).execOverService(named, command, signals);
}

/** Without `--`, the command begins at the first argument that is not a flag. The line to type is shown. */
function commandProblem(args: readonly string[], dashes: number, command: readonly string[]): string | undefined {
  if (command.length === 0)
    return "Expected `--` and a command, for example: slotkeeper exec --name jobs -- ./backup.sh";
  if (dashes >= 0) return undefined;
  const line = [...args.slice(0, -command.length), "--", ...command].map(shellWord).join(" ");
  return `Expected \`--\` before the command: slotkeeper exec ${line}`;
}

function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
