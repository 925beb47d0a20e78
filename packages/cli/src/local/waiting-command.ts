/**
 * The process of a command, from before the wait to its end. It starts as a shell that waits on a pipe and becomes the
 * command at the grant, so its id and start time are known before the slot is asked for. If `exec` dies first, the pipe
 * ends, and the shell exits without having started the command.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { CANNOT_START, NO_PROGRAM } from "../exit-codes.ts";
import { exitOf } from "../signals.ts";

/** Descriptor 3 has a line for each variable, then an empty one. If that is missing, `exec` has died. */
const SHELL = `
_slotkeeper_go=
while IFS= read -r _slotkeeper_line <&3; do
  [ -n "$_slotkeeper_line" ] || { _slotkeeper_go=1; break; }
  export "$_slotkeeper_line"
done
[ -n "$_slotkeeper_go" ] || exit 1
exec 3<&-
case $1 in
  */*) [ -f "$1" ] && [ -x "$1" ] ;;
  *) command -v -- "$1" >/dev/null 2>&1 ;;
esac || {
  printf 'Cannot start the command "%s": ${NO_PROGRAM}.\\n' "$1" >&2
  exit ${CANNOT_START}
}
exec "$@"`;
const GO_FD = 3;

export class WaitingCommand {
  readonly exited: Promise<number>;
  readonly #child: ChildProcess;

  /** `descriptors`: those of slots, by their number in the command. The command and all that it starts keep the slots. */
  constructor(command: readonly string[], env: NodeJS.ProcessEnv, descriptors: ReadonlyMap<number, number>) {
    const last = Math.max(GO_FD, ...descriptors.keys());
    const slots = Array.from({ length: last - GO_FD }, (_, at) => descriptors.get(GO_FD + 1 + at) ?? "ignore");
    const stdio: Descriptors = ["inherit", "inherit", "inherit", "pipe", ...slots];
    this.#child = started(stdio, ["-c", SHELL, "sh", ...command], env);
    // The shell may have ended, for example by a signal to the whole group.
    this.#pipe.on("error", () => {});
    this.exited = new Promise((resolve, reject) => {
      this.#child.on("error", reject);
      this.#child.on("exit", (code, signal) => resolve(code ?? exitOf(signal ?? "SIGTERM")));
    });
    this.exited.catch(() => {});
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  start(variables: { readonly [name: string]: string }): void {
    const lines = Object.entries(variables).map(([name, value]) => `${name}=${value.replaceAll("\n", " ")}\n`);
    this.#pipe.end(`${lines.join("")}\n`);
  }

  /** Ends the shell before it has become the command. */
  abandon(): void {
    this.#pipe.destroy();
  }

  kill(signal: NodeJS.Signals): boolean {
    return this.#child.kill(signal);
  }

  get #pipe(): Writable {
    return this.#child.stdio[GO_FD] as Writable;
  }
}

type Descriptors = ("inherit" | "ignore" | "pipe" | number)[];

function started(stdio: Descriptors, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess {
  try {
    return spawn("/bin/sh", args, { stdio, env });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EINVAL") throw error;
    const limit = "this process may not have that many open files (see ulimit -n)";
    const message = `Cannot give the command descriptor ${stdio.length - 1}: ${limit}. With --close it is not needed.`;
    throw new Error(message, { cause: error });
  }
}
