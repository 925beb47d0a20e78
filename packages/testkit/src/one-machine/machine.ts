/** A machine of its own for a test: a folder with a socket, and commands that share slots by it. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cleanEnvironment } from "../fleet/index.ts";
import { JobLog } from "./jobs.ts";

const BIN = fileURLToPath(new URL("../../../cli/bin/slotkeeper.mjs", import.meta.url));

/** A way to run a command under a slot: its command line, given the command. */
export type Wrapper = (command: readonly string[], bucket: string) => readonly string[];

export interface Started {
  readonly id: string;
  readonly process: ChildProcess;
  readonly exited: Promise<number | NodeJS.Signals | null>;
}

export class Machine {
  static readonly #open = new Set<Machine>();
  readonly folder = mkdtempSync(join(tmpdir(), "one-"));
  readonly socket = join(this.folder, "k", "s");
  readonly jobs = new JobLog(this.folder);
  readonly #wrapper: Wrapper;
  readonly #living = new Set<ChildProcess>();
  #count = 0;

  /** Without a wrapper, `slotkeeper exec` with this number of slots. */
  constructor(slots: number, wrapper?: Wrapper) {
    const own: Wrapper = (command, bucket) => this.exec(["--slots", String(slots), "--as", bucket], command);
    this.#wrapper = wrapper ?? own;
    Machine.#open.add(this);
  }

  /** For a program that is ended before its time. */
  static async closeAll(): Promise<void> {
    for (const machine of Machine.#open) await machine.close();
  }

  /** The command line of `slotkeeper exec` for this machine. */
  exec(flags: readonly string[], command: readonly string[]): string[] {
    return [process.execPath, BIN, "exec", "--socket", this.socket, "--name", "job", ...flags, "--", ...command];
  }

  /** The command line of a command under a slot. */
  lineOf(command: readonly string[], bucket = "one"): readonly string[] {
    return this.#wrapper(command, bucket);
  }

  /** Starts a job in a process group of its own. */
  start(kind: "plain" | "background" | "closing", seconds: number, bucket = "one"): Started {
    const id = `j${this.#count++}`;
    const [file = "", ...args] = this.lineOf(this.jobs.command(id, kind, seconds), bucket);
    const child = spawn(file, args, {
      detached: true,
      stdio: "ignore",
      env: { ...process.env, ...cleanEnvironment() },
    });
    this.#living.add(child);
    const exited = new Promise<number | NodeJS.Signals | null>((resolve) => {
      child.on("exit", (code, signal) => {
        this.#living.delete(child);
        resolve(code ?? signal);
      });
    });
    return { id, process: child, exited };
  }

  /** How many jobs were started. */
  get started(): number {
    return this.#count;
  }

  /** Waits until `find` returns something. */
  async until<T>(find: () => T | undefined | Promise<T | undefined>, what: string): Promise<T> {
    const giveUpAt = Date.now() + 60_000;
    for (;;) {
      const found = await find();
      if (found !== undefined) return found;
      if (Date.now() > giveUpAt) throw new Error(`${what} did not happen within a minute`);
      await new Promise((resolve) => setTimeout(resolve, 3));
    }
  }

  /** The files beside the socket. */
  files(): string[] {
    try {
      return readdirSync(join(this.folder, "k"));
    } catch {
      return [];
    }
  }

  /** The state of the keeper; `undefined` if none answers. */
  async state(): Promise<{ pid: number; names: { name: string; holders: object[]; waiters: object[] }[] } | undefined> {
    const numbers = this.files()
      .map((name) => Number(name.slice("s.".length)))
      .filter((number) => number > 0)
      .sort((a, b) => b - a);
    for (const number of numbers) {
      const text = await get(`${this.socket}.${number}`, "/api/v0/local");
      if (text !== undefined) return JSON.parse(text) as Awaited<ReturnType<Machine["state"]>>;
    }
    return undefined;
  }

  /** Kills what is left and removes the folder. */
  async close(): Promise<void> {
    Machine.#open.delete(this);
    for (const { pid } of this.#living) if (pid !== undefined) killGroup(pid);
    const keeper = await this.state();
    if (keeper !== undefined) process.kill(keeper.pid, "SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

function get(socketPath: string, path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const sent = request({ socketPath, path }, (answer) => {
      let text = "";
      answer.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      answer.on("end", () => resolve(text)).on("error", () => resolve(undefined));
    });
    sent.on("error", () => resolve(undefined));
    sent.end();
  });
}
