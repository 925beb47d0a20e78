import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { HistoryReader, type Verdict } from "@slotkeeper/testkit/history";
import { afterAll, expect, test } from "vitest";
import { Script } from "./script.ts";

const COMMAND = fileURLToPath(new URL("../../bin/check-history.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "slotkeeper-history-"));

afterAll(() => rmSync(folder, { recursive: true }));

function check(lines: readonly unknown[], ...options: string[]) {
  const file = join(folder, "history.jsonl");
  writeFileSync(file, lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""));
  return spawnSync(process.execPath, [COMMAND, ...options, file], { encoding: "utf8" });
}

test("the command passes a good history, and shows the lines of a violation", () => {
  const script = new Script();
  script.session().granted(0, 10).release(100);
  const good = check(script.lines);
  expect(good).toMatchObject({ status: 0, stdout: expect.stringMatching(/HIST1 .*ok, 1 judged[^]*passed\n$/) });
  for (const at of [20, 21]) script.session().granted(0, at).release(100);
  const bad = check(script.lines);
  expect(bad.status).toBe(1);
  expect(bad.stdout).toMatch(
    /HIST1 .*1 VIOLATIONS\n.*3 slots of the host are held at once, 2 allowed\n +2: \{"kind":"call"/,
  );
});

test("with --json it prints the verdict, and bad input is named by line and field", () => {
  const script = new Script();
  script.session().granted(0, 10).timeout(20, 30, "unknown-token");
  const verdict = JSON.parse(check(script.lines, "--json").stdout) as Verdict;
  expect(verdict.violations.map(({ rule, lines }) => ({ rule, lines }))).toContainEqual({
    rule: "HIST5",
    lines: [2, 3],
  });
  const cases = [
    ["nonsense", "Line 1 is not JSON"],
    [{ kind: "other" }, 'Expected `kind` of line 1 to be one of facts, fault, call, use, got "other"'],
    [{ kind: "call", call: "acquire", sentAt: "now", ask: {} }, "Expected `sentAt` of line 1 to be a number of milli"],
    [{ kind: "call", call: "ask", sentAt: 1, ask: {} }, "Expected `call` of line 1 to be one of acquire"],
    [{ kind: "fault", fault: "bad", from: 1 }, "Expected `fault` of line 1 to be one of delay"],
  ] as const;
  for (const [line, message] of cases) expect(() => new HistoryReader().add(line)).toThrow(message);
  expect(check(["nonsense"])).toMatchObject({ status: 2, stderr: expect.stringContaining("Line 1 is not JSON") });
});

test("it explains itself, and refuses unknown options", () => {
  const help = spawnSync(process.execPath, [COMMAND, "--help"], { encoding: "utf8" });
  expect(help).toMatchObject({ status: 0, stdout: expect.stringContaining("HIST9") });
  expect(spawnSync(process.execPath, [COMMAND, "--wrong"]).status).toBe(2);
  expect(spawnSync(process.execPath, [COMMAND]).status).toBe(2);
  expect(spawnSync(process.execPath, [COMMAND, join(folder, "absent")]).status).toBe(2);
});
