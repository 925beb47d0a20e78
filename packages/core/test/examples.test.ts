// The library guide shows the example files, and they run.
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { withProgram } from "@slotkeeper/testkit/bundle";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const libraryGuide = readFileSync(join(root, "docs/guides/library.md"), "utf8");
const shown = [...libraryGuide.matchAll(/<!-- example: (\S+) -->\n```ts\n([\s\S]*?)```/g)].map(([, name, code]) => ({
  name,
  code,
}));

/** Runs an example from the sources, as a program of its own. */
async function runExample(name: string): Promise<string> {
  const file = join(root, "examples/src", `${name}.ts`);
  const { stdout } = await withProgram({ file }, (program) => promisify(execFile)(process.execPath, [program]));
  return stdout;
}

test("the guide shows an example for each use", () => {
  expect(shown.map(({ name }) => name)).toEqual(["limit", "lease", "per-user", "rates", "using", "tasks"]);
});

test.each(shown)("the guide's example $name is the example file", ({ name, code }) => {
  expect(code).toBe(readFileSync(join(root, "examples/src", `${name}.ts`), "utf8"));
});

test.each(shown)("the guide's example $name has at most thirty lines", ({ code }) => {
  expect(code?.trim().split("\n").length).toBeLessThanOrEqual(32);
});

const outputs: Record<string, string> = {
  limit: "a: done, b: done, c: done, d: done\n",
  lease: "SLOT_EXPIRED\nprinted\n",
  rates: "red: WHY?, red: WHEN?, blue: WHO?\n1\n2\n3\n",
  using: "alone, with slot 1\ntrue false\n",
  tasks: "simulated: 400 ms\nfor real: 10 results\n",
};
test.each(Object.entries(outputs))("the example %s prints what it says", async (name, output) => {
  expect(await runExample(name)).toBe(output);
});

test("the demonstration hands out every slot and takes one back", async () => {
  expect(await runExample("demo")).toContain("12 slots handed out, 11 released, 1 taken back");
});

test("every example is shown in a guide", () => {
  const guides = readdirSync(join(root, "docs/guides")).map((file) =>
    readFileSync(join(root, "docs/guides", file), "utf8"),
  );
  const texts = guides.join("\n");
  for (const file of readdirSync(join(root, "examples/src"))) expect(texts).toContain(file.replace(/\.ts$/, ""));
});
