import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const LOAD = fileURLToPath(new URL("../bin/load.mjs", import.meta.url));
const run = (...args: string[]) => promisify(execFile)(process.execPath, [LOAD, ...args]);

test("the load program lists its options with --help, and refuses others with a sentence", async () => {
  const { stdout } = await run("--help");
  for (const flag of ["--url", "--token", "--hosts", "--waiters", "--seconds"]) expect(stdout).toContain(`  ${flag} `);
  await expect(run("--hots", "3")).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^Unknown option '--hots'[\s\S]*npm run load -- --help/),
  });
});
