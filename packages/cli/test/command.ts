import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { cleanEnvironment } from "@slotkeeper/testkit/fleet";
import { afterEach } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
export const BIN = fileURLToPath(new URL("../bin/slotkeeper.mjs", import.meta.url));

/** A process and all its output. */
export class Command {
  readonly process: ChildProcess;
  readonly exited: Promise<number | NodeJS.Signals | null>;
  out = "";
  err = "";

  constructor(file: string, args: readonly string[], environment: Record<string, string> = {}) {
    this.process = spawn(file, args, { cwd: ROOT, env: { ...cleanEnvironment(), ...environment } });
    this.process.stdout?.on("data", (chunk: Buffer) => {
      this.out += chunk.toString();
    });
    this.process.stderr?.on("data", (chunk: Buffer) => {
      this.err += chunk.toString();
    });
    this.exited = new Promise((resolve) => this.process.on("close", (code, signal) => resolve(code ?? signal)));
    started.add(this);
  }

  /** Waits until the output matches the pattern. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.out) ?? pattern.exec(this.err);
      if (found !== null) return found;
      const { exitCode, signalCode } = this.process;
      if (exitCode !== null || signalCode !== null) {
        throw new Error(`exited ${exitCode ?? signalCode}: ${this.out}${this.err}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async url(): Promise<string> {
    return (await this.said(/listening\s+(http:\S+)/))[1] as string;
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }
}

/** What `exec` says, with a slot of a service or of this machine. */
export function cannotStart(command: string): string {
  return `Cannot start the command "${command}": there is no such program, or it is not executable.\n`;
}

const started = new Set<Command>();

export function slotkeeper(args: readonly string[], environment?: Record<string, string>): Command {
  return new Command(process.execPath, [BIN, ...args], environment);
}

afterEach(async () => {
  for (const command of started) {
    if (command.process.exitCode === null) command.kill("SIGKILL");
    await command.exited;
  }
  started.clear();
});
