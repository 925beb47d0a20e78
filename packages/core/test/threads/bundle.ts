import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { build } from "esbuild";

/** Bundles a TypeScript file of this folder, from sources, for a worker of Node or of a page. Removed when the process ends. */
export async function bundle(file: string, platform: "node" | "browser"): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-threads-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, `${basename(file, ".ts")}.mjs`);
  await build({
    entryPoints: [join(import.meta.dirname, file)],
    outfile,
    bundle: true,
    format: "esm",
    platform,
    target: "es2022",
    conditions: ["@slotkeeper/source"],
    logLevel: "error",
  });
  return outfile;
}
