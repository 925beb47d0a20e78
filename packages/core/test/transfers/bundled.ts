/** Programs of this repository in processes of their own, straight from the sources: no build has to come before. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";

/** Bundles the program, gives its path to `use`, and removes it again. */
export async function withBundle<T>(
  source: { file: string } | { text: string; folder: string },
  use: (program: string, folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "slotkeeper-"));
  const program = join(folder, "program.mjs");
  try {
    await build({
      ...("file" in source
        ? { entryPoints: [source.file] }
        : { stdin: { contents: source.text, resolveDir: source.folder, loader: "ts" } }),
      bundle: true,
      platform: "node",
      format: "esm",
      conditions: ["@slotkeeper/source"],
      outfile: program,
      logLevel: "error",
    });
    return await use(program, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What the program wrote, once it has ended by itself; an error with what it complained about if it failed. */
export function outputOf(
  program: string,
  args: readonly string[] = [],
  flags: readonly string[] = [],
): Promise<string> {
  const child: ChildProcess = spawn(process.execPath, [...flags, program, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, errors] = ["", ""];
  child.stdout?.on("data", (chunk: Buffer) => (out += chunk.toString()));
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(out) : reject(new Error(`Exit ${code}: ${errors}`))));
  });
}
