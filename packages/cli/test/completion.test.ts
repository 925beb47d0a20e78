// The completion scripts in real shells: a person types, presses Tab, and reads the line.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SHOWN } from "../src/commands/commands.ts";
import { BIN, slotkeeper } from "./command.ts";
import { TerminalSession } from "./terminal.ts";

const folder = mkdtempSync(join(tmpdir(), "slotkeeper-completion-"));
const path = `${folder}${delimiter}${process.env["PATH"]}`;
beforeAll(() => {
  writeFileSync(join(folder, "slotkeeper"), `#!/bin/sh\nexec "${process.execPath}" "${BIN}" "$@"\n`);
  chmodSync(join(folder, "slotkeeper"), 0o755);
  mkdirSync(join(folder, "work"));
  writeFileSync(join(folder, "work", "unmistakable.json"), "{}");
});
afterAll(() => rmSync(folder, { recursive: true }));

const SHELLS = {
  bash: { args: ["--norc", "--noprofile", "-i"], load: "source <(slotkeeper completion bash)" },
  zsh: { args: ["-f", "-i"], load: "autoload -U compinit; compinit -D; source <(slotkeeper completion zsh)" },
  fish: { args: ["--no-config", "-i"], load: "slotkeeper completion fish | source" },
};

const TYPED: readonly (readonly [typed: string, completed: string])[] = [
  ["slotkeeper brea", "slotkeeper breaker"],
  ["slotkeeper breaker api.example.com cl", "slotkeeper breaker api.example.com close"],
  ["slotkeeper breaker --url http://h op op", "slotkeeper breaker --url http://h op open"],
  ["slotkeeper limit h --per", "slotkeeper limit h --per-bucket"],
  ["slotkeeper completion z", "slotkeeper completion zsh"],
  ["slotkeeper serve --config work/unm", "slotkeeper serve --config work/unmistakable.json"],
  ["slotkeeper serve --config=work/unm", "slotkeeper serve --config=work/unmistakable.json"],
  ["slotkeeper exec --name x -- cat work/unm", "slotkeeper exec --name x -- cat work/unmistakable.json"],
];

describe.each(Object.entries(SHELLS))("%s", (shell, { args, load }) => {
  const isHere = spawnSync(shell, ["-c", ":"]).status === 0;
  if (!isHere) console.log(`${shell} is not installed: its completion is not tested. Debian has a package ${shell}.`);

  test.skipIf(!isHere)("completes commands, arguments, flags and files", async () => {
    // fish keeps state in the home folder.
    const environment = { PATH: path, HOME: folder, ZDOTDIR: folder, PS1: "> ", INPUTRC: "/dev/null" };
    const session = new TerminalSession(args, { program: shell, columns: 160, rows: 50, environment });
    session.press(`cd ${folder}; ${load}; echo load''ed\r`);
    await expect.poll(() => session.text, { timeout: 30_000 }).toMatch(/^loaded/m);
    for (const [typed, completed] of TYPED) {
      session.press(`${typed}\t`);
      await expect.poll(() => session.lines.findLast(Boolean), { timeout: 15_000 }).toContain(completed);
      // Ctrl+U erases the line, so that the shell does not run it.
      session.press("\u0015");
    }
    session.press("exit\r");
    await session.exited;
  });
});

test("bash offers every command, and every flag of each", async () => {
  const script = slotkeeper(["completion", "bash"]);
  expect(await script.exited).toBe(0);
  const offered = (...words: string[]): string[] => {
    const line = ["slotkeeper", ...words, "--"].join(" ");
    const ask = `COMP_LINE='${line}' COMP_POINT=${line.length}; _slotkeeper; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = spawnSync("bash", ["-c", `${script.out}\n${ask}`], { encoding: "utf8" });
    return stdout.trim().split("\n");
  };
  expect(offered()).toEqual(["--help", "--version"]);
  for (const { name, options } of SHOWN) {
    expect(offered(name), name).toEqual(Object.keys(options).map((flag) => `--${flag}`));
  }
});

test("another shell is refused, and the known ones are named", async () => {
  const command = slotkeeper(["completion", "tcsh"]);
  expect([await command.exited, command.err.split("\n")[0]]).toEqual([
    2,
    'Expected SHELL to be bash or zsh or fish, got "tcsh".',
  ]);
});
