import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const BIN = fileURLToPath(new URL("../bin/slotkeeper.mjs", import.meta.url));

/** The command runs what was built, as a user's does. */
export function build(): void {
  const { status, stdout } = spawnSync("npx", ["--no-install", "tsc", "-b", "packages/cli"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the build failed:\n${stdout}`);
}

/** A process and all it has said. */
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

  /** Until it has said so. */
  async said(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.out) ?? pattern.exec(this.err);
      if (found !== null) return found;
      if (this.process.exitCode !== null) throw new Error(`exited ${this.process.exitCode}: ${this.out}${this.err}`);
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

const started = new Set<Command>();

export function slotkeeper(args: readonly string[], environment?: Record<string, string>): Command {
  return new Command(process.execPath, [BIN, ...args], environment);
}

/** What the machine that runs the tests has set is not what they are about. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("SLOTKEEPER_") && name !== "NODE_ENV");
  return Object.fromEntries(kept);
}

afterEach(async () => {
  for (const command of started) {
    if (command.process.exitCode === null) command.kill("SIGKILL");
    await command.exited;
  }
  started.clear();
});
