import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { bundleTo } from "@slotkeeper/testkit/bundle";

/** A program of this folder as one file, which Node runs without a build of the workspace. */
export async function bundleChild(program: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "slotkeeper-child-"));
  const outfile = join(folder, "dist", "child.mjs");
  // The server reads its version from this file.
  await copyFile(new URL("../../package.json", import.meta.url), join(folder, "package.json"));
  // The database driver is CommonJS and loads Node's modules with `require`.
  const js = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;
  await bundleTo(outfile, { file: fileURLToPath(new URL(program, import.meta.url)) }, { banner: { js } });
  return outfile;
}

/** A process that prints one JSON value per line. */
export class Child {
  readonly lines: Record<string, unknown>[] = [];
  readonly process: ChildProcess;
  readonly #closed: Promise<unknown>;
  #errors = "";

  constructor(command: readonly string[]) {
    const [program = "", ...rest] = command;
    this.process = spawn(program, rest, { stdio: ["ignore", "pipe", "pipe"] });
    this.#closed = once(this.process, "close");
    this.process.stderr?.on("data", (chunk: Buffer) => (this.#errors += chunk.toString()));
    createInterface({ input: this.process.stdout as NodeJS.ReadableStream }).on("line", (line) => this.#receive(line));
  }

  /** Resolves when that number of lines has arrived, or the process has ended. */
  async received(count: number): Promise<void> {
    while (this.lines.length < count && this.process.exitCode === null && this.process.signalCode === null) {
      await Promise.race([once(this.process.stdout as NodeJS.ReadableStream, "data"), this.#closed]);
    }
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.#closed;
  }

  async ended(): Promise<string> {
    await this.#closed;
    return this.#errors;
  }

  /** Ignores the incomplete last line of a dying process. */
  #receive(line: string): void {
    try {
      this.lines.push(JSON.parse(line) as Record<string, unknown>);
    } catch {}
  }
}
