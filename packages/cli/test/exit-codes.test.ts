import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { SHOWN } from "../src/commands/commands.ts";
import { slotkeeper } from "./command.ts";

const page = readFileSync(new URL("../../../docs/reference/errors.md", import.meta.url), "utf8");

/** The pairs of code and meaning of a help text. */
async function listed(args: readonly string[]): Promise<string[]> {
  const command = slotkeeper([...args, "--help"]);
  expect(await command.exited).toBe(0);
  const [, section = ""] = command.out.split("\nExit codes\n");
  return [...section.matchAll(/^ {2}(\d+) +(.+)$/gm)].map(([, code, meaning]) => `${code} ${meaning}`);
}

test("the reference lists every exit code of the command with its meaning, and no other", async () => {
  const [, section = ""] = page.split("\n## Exit codes of the command\n");
  const documented = [...section.matchAll(/^\| (\d+) +\| (.+?) +\|$/gm)].map(
    ([, code, meaning]) => `${code} ${meaning}`,
  );
  expect(documented).toEqual(await listed([]));
  expect(new Set(documented.map((row) => row.split(" ")[0])).size).toBe(documented.length);
});

test("the help of each command lists some of them", async () => {
  const names = SHOWN.map(({ name }) => name);
  const [all = [], ...some] = await Promise.all([[], ...names.map((name) => [name])].map(listed));
  for (const codes of some) {
    expect(all).toEqual(expect.arrayContaining(codes));
    expect(codes.length).toBeGreaterThan(1);
  }
});
