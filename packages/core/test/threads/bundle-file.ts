import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { bundle } from "@slotkeeper/testkit/bundle";

/** Bundles a TypeScript file of this folder for a worker of Node or of a page. Removed when the process ends. */
export async function bundleFile(file: string, platform: "node" | "browser"): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-threads-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, `${basename(file, ".ts")}.mjs`);
  const entry = JSON.stringify(join(import.meta.dirname, file));
  // The package says that its files have no side effects: without this the worker itself would be left out.
  const options = { platform, logLevel: "error", ignoreAnnotations: true } as const;
  writeFileSync(path, await bundle(`import ${entry};`, import.meta.dirname, options));
  return path;
}
