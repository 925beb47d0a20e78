// The commands with which tests control a running PostgreSQL server:
//   stop fast | stop immediate   ends it as `pg_ctl stop -m` does
//   start                        starts it, or waits until it is up if it runs
//   pause | resume               SIGSTOP and SIGCONT for the server and all its processes
//   fill | free                  leaves no space on its file system, and gives it back
import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

const STOP_SIGNALS = { fast: "SIGINT", immediate: "SIGQUIT" };
/** Files of these sizes are written until not even the smallest fits. */
const BALLAST_BYTES = [1 << 20, 1 << 14, 1 << 12];

export class ServerControl {
  #program;
  #args;
  #options;
  #data;
  #server;
  #hasEnded;
  #isExpected = false;
  #failed;
  /** Resolves if the server ends and no command was the reason. */
  hasFailed = new Promise((resolve) => (this.#failed = resolve));

  constructor(program, args, options, data) {
    this.#program = program;
    this.#args = args;
    this.#options = options;
    this.#data = data;
  }

  async run(command) {
    const [name, mode] = command.split(" ");
    // From here on the chaos test breaks the server on purpose, and starts it again.
    this.#isExpected = true;
    if (name === "stop" && mode in STOP_SIGNALS) return this.#stop(STOP_SIGNALS[mode]);
    if (name === "pause") return this.#signalAll("SIGSTOP");
    if (name === "resume") return this.#signalAll("SIGCONT");
    if (name === "fill") return this.#fill();
    if (name === "free") return rmSync(this.#ballast, { force: true });
    if (name !== "start") throw new Error(`Unknown command: ${command}`);
    if (!(await this.start())) throw new Error("The server did not start");
  }

  /** Resolves when the server is up: the last line of `postmaster.pid` is "ready", as pg_ctl checks it. */
  async start() {
    if (this.#server === undefined) this.#launch();
    const file = join(this.#data, "postmaster.pid");
    for (;;) {
      if (existsSync(file) && readFileSync(file, "utf8").trimEnd().endsWith("ready")) return true;
      const pause = new Promise((resolve) => setTimeout(resolve, 10, "pause"));
      if ((await Promise.race([this.#hasEnded, pause])) !== "pause") return false;
    }
  }

  /** Ends the server at once, without a checkpoint, because its data is deleted anyway. Works also if it is paused. */
  async end() {
    this.#signalAll("SIGCONT");
    await this.#stop("SIGQUIT");
  }

  #launch() {
    const server = spawn(this.#program, this.#args, this.#options);
    this.#server = server;
    this.#hasEnded = new Promise((resolve) => server.once("exit", resolve).once("error", resolve)).then(() => {
      this.#server = undefined;
      if (!this.#isExpected) this.#failed();
    });
  }

  async #stop(signal) {
    this.#server?.kill(signal);
    await this.#hasEnded;
  }

  #signalAll(signal) {
    const server = this.#server?.pid;
    if (server === undefined) return;
    const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
    const processes = stdout.split("\n").map((line) => line.trim().split(/\s+/).map(Number));
    const children = processes.filter(([, parent]) => parent === server).map(([pid]) => pid);
    for (const pid of [server, ...children]) signalIfThere(pid, signal);
  }

  get #ballast() {
    return join(this.#data, "ballast");
  }

  #fill() {
    const file = openSync(this.#ballast, "a");
    for (const bytes of BALLAST_BYTES) {
      const block = Buffer.alloc(bytes, 1);
      while (fits(file, block));
    }
    closeSync(file);
  }
}

function fits(file, block) {
  try {
    return writeSync(file, block) === block.length;
  } catch (error) {
    if (error.code === "ENOSPC") return false;
    throw error;
  }
}

function signalIfThere(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}
