/**
 * Starts a keeper, if none is alive. Loaded only for that: most commands find one.
 *
 * The file `SOCKET.starting` only saves the machine from a hundred programs when a hundred commands start at the same
 * moment. A wrong or stale one costs time, not safety: which process becomes the keeper is decided in `generation.ts`.
 */
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { spawnWith } from "./descriptors.ts";
import { findKeeper } from "./generation.ts";
import { KeeperError } from "./keeper-error.ts";
import type { KeeperCommand } from "./keeper-link.ts";
import { checkFolder, FILE_SUFFIX } from "./socket-folder.ts";

/** How long a start may take: a machine on which hundreds of commands start is slow. */
const START_MS = 60_000;
const LOOK_MS = 20;
/** A start that takes longer is no reason for others to wait. */
const STARTING_MS = 5_000;
const LOG_LINES = 5;
/** A keeper may be killed while it starts, but not for ever. */
const MOST_STARTS = 5;

/** Returns the path of a keeper that is alive. Throws a `KeeperError` with the last lines of its log if none starts. */
export async function findOrStartKeeper(socket: string, command: () => KeeperCommand): Promise<string> {
  checkFolder(socket);
  const untilAt = Date.now() + START_MS;
  let started: StartedKeeper | undefined;
  for (let starts = 0; ; ) {
    const found = await findKeeper(socket);
    if (found !== undefined) return found;
    if (started?.failure !== undefined) throw new KeeperError({ reason: started.failure });
    if (Date.now() > untilAt) throw new KeeperError({ reason: `The keeper did not start within ${START_MS / 1000} s` });
    if (started?.isOver !== false && mayStart(socket)) {
      started = new StartedKeeper(socket, command(), starts === MOST_STARTS);
      starts++;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS * (0.5 + Math.random())));
  }
}

function mayStart(socket: string): boolean {
  const path = `${socket}${FILE_SUFFIX.starting}`;
  try {
    writeFileSync(path, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A full disk must not prevent the start.
    if (code !== "EEXIST") return true;
  }
  if (isStale(path)) rmSync(path, { force: true });
  return false;
}

function isStale(path: string): boolean {
  try {
    const pid = Number(readFileSync(path, "utf8"));
    if (Date.now() - statSync(path).mtimeMs > STARTING_MS) return true;
    if (pid > 0) process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** A keeper that this process started. It outlives this process. */
class StartedKeeper {
  failure: string | undefined;
  isOver = false;
  readonly #log: string;
  readonly #starting: string;

  /** If it is the last try, a keeper that is killed is a failure. */
  constructor(socket: string, [file, ...args]: KeeperCommand, isLast: boolean) {
    this.#log = `${socket}${FILE_SUFFIX.log}${crypto.randomUUID().slice(0, 8)}`;
    this.#starting = `${socket}${FILE_SUFFIX.starting}`;
    try {
      this.#watch(spawnKeeper(file, [...args, "keeper", "--socket", socket, "--log", this.#log], this.#log), isLast);
    } catch (error) {
      this.#failed((error as Error).message);
    }
  }

  #watch(child: ChildProcess, isLast: boolean): void {
    child.unref();
    child.on("error", ({ code, message }: NodeJS.ErrnoException) =>
      this.#failed(code === "ENOENT" ? "the command slotkeeper is missing; install @slotkeeper/cli" : message),
    );
    // A keeper that finds another one alive ends with 0. One that is killed is started again.
    child.on("exit", (code, signal) => {
      this.isOver = true;
      if (code === 0 || (signal !== null && !isLast)) rmSync(this.#starting, { force: true });
      else this.#failed(lastLines(this.#log) || `it ended with ${signal ?? `exit code ${code}`}`);
    });
  }

  #failed(why: string): void {
    this.failure = `The keeper cannot be started: ${why.replace(/\.$/, "")}`;
    rmSync(this.#log, { force: true });
    rmSync(this.#starting, { force: true });
  }
}

/** The keeper outlives this process, so it must not inherit descriptors: neither the slot of a command, nor a pipe. */
function spawnKeeper(file: string, args: readonly string[], log: string): ChildProcess {
  const output = openSync(log, "wx", 0o600);
  try {
    return spawnWith(["ignore", output, output], file, args, { detached: true, cwd: "/" });
  } finally {
    closeSync(output);
  }
}

function lastLines(log: string): string {
  try {
    return readFileSync(log, "utf8").trim().split("\n").slice(-LOG_LINES).join("\n");
  } catch {
    return "";
  }
}
