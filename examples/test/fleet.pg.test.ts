// `npm run fleet`, run: a table with three instances at work, a verdict of the checker, and nothing left after Ctrl-C.
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const EXAMPLE = fileURLToPath(new URL("../dist/fleet.js", import.meta.url));

test("the fleet hands out slots at three instances, and Ctrl-C leaves no process and no file", async () => {
  const home = mkdtempSync(join(tmpdir(), "slotkeeper-example-"));
  // Started by root, PostgreSQL runs as another user.
  chmodSync(home, 0o755);
  const example = spawn(process.execPath, [EXAMPLE], {
    env: { ...process.env, TMPDIR: home },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<number | null>((resolve) => void example.once("exit", resolve));
  let text = "";
  for (const stream of [example.stdout, example.stderr])
    stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const grantsPerSecond = () => Number(/.*\n {2}fleet +([\d.]+)/s.exec(text)?.[1] ?? 0);
  await expect.poll(grantsPerSecond, { timeout: 60_000, interval: 100 }).toBeGreaterThan(0);
  const instances = [...text.matchAll(/^ {2}[123] +(\d+) .*http:/gm)].map(([, pid]) => Number(pid));
  expect(new Set(instances).size).toBe(3);
  example.kill("SIGINT");
  expect({ code: await exited, text }).toEqual({ code: 0, text: expect.stringContaining("Nothing is left running") });
  // The checker judged what the clients saw.
  expect(text).toMatch(/independent checker[^]*HIST1 .*: ok, [1-9]\d* judged[^]*\npassed\n/);
  for (const pid of instances) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  expect(readdirSync(home)).toEqual([]);
  rmSync(home, { recursive: true });
});
