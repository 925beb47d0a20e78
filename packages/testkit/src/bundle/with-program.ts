import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BundleSource, bundleTo } from "./bundle.ts";

/** Bundles a program for Node into a temporary folder, calls `use` with its path, and removes the folder. */
export async function withProgram<T>(
  source: BundleSource,
  use: (program: string, folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "slotkeeper-program-"));
  try {
    const program = join(folder, "program.mjs");
    await bundleTo(program, source);
    return await use(program, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}
