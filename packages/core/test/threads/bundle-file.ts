import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { bundleTo } from "@slotkeeper/testkit/bundle";

/** Bundles a TypeScript file of this folder for a worker of Node or of a page. Removed when the process ends. */
export async function bundleFile(file: string, platform: "node" | "browser"): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-threads-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, `${basename(file, ".ts")}.mjs`);
  await bundleTo(path, { file: join(import.meta.dirname, file) }, { platform });
  return path;
}
