/**
 * Runs a command while a slot is held.
 *
 * EXEC1  The command starts only with a slot. The slot is released after the command has ended, for any reason.
 * EXEC2  Signals to this process go to the command. Before the command runs, they end the wait and leave the queue.
 * EXEC3  If the lease is lost, the command gets SIGTERM, because another command may get the slot.
 */
import { EXEC } from "./commands/calling.ts";
import type { FlagsOf } from "./commands/command.ts";
import { VARIABLES, variable } from "./environment.ts";
import { firstArgument, readArguments, wrongUsage } from "./read-flags.ts";
import { exitOf, Signals } from "./signals.ts";
import { joined, nameProblems, waitProblems } from "./wait-flags.ts";

export async function execCommand(args: readonly string[]): Promise<number> {
  const dashes = args.indexOf("--");
  const at = dashes < 0 ? firstArgument(args, EXEC.options) : dashes;
  const read = await readArguments(args.slice(0, at), EXEC);
  if (typeof read === "number") return read;
  const { flags } = read;
  const command = at === undefined ? [] : args.slice(dashes < 0 ? at : at + 1);
  const flagProblems = flags.name === undefined ? waitProblems(flags) : nameProblems(flags);
  const problems = joined([flagProblems, commandProblem(args, dashes, command)]);
  if (problems !== undefined) return wrongUsage(problems, EXEC);
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

/** Each way loads only what it needs: a start takes as long as what it loads. */
async function run(flags: FlagsOf<typeof EXEC>, command: readonly string[], signals: Signals): Promise<number> {
  const { name, slots = "1", as: bucket } = flags;
  if (name === undefined) return (await import("./exec-over-service.ts")).execOverService(flags, command, signals);
  if (flags.url === undefined && variable(VARIABLES.url) === undefined) {
    const { execLocally } = await import("./local/exec-locally.ts");
    // At once: otherwise Node frees all its memory first, which takes 5 ms. No call is left that a keeper would need.
    return process.exit(await execLocally(flags, command, signals));
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
