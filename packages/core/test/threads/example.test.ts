import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { bundleFile } from "./bundle-file.ts";

const root = join(import.meta.dirname, "../../../..");

it("the guide shows the example file, and it gives back what the clumsy worker held", async () => {
  const guide = readFileSync(join(root, "docs/guides/threads.md"), "utf8");
  expect(guide).toContain(readFileSync(join(root, "examples/src/threads.ts"), "utf8"));
  const script = await bundleFile("../../../../examples/src/threads.ts", "node");
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  expect(stdout).toBe("in use at the end: 0\n");
});
