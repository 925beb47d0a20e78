// The tests of the Python client, against a real process of the service and through a fault proxy.
import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cleanEnvironment } from "@slotkeeper/testkit/fleet";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isAnswer } from "../src/answers.ts";
import { changedAnswers } from "./changed-answers.ts";
import { PythonWorld } from "./python-world.ts";

const PYTHON = fileURLToPath(new URL("../../../python/", import.meta.url));
const OLDEST = [3, 9];

/** Why the tests cannot run here, or `undefined`. */
function missing(): string | undefined {
  const code = "import sys; print(sys.version_info[0], sys.version_info[1])";
  const { status, stdout } = spawnSync("python3", ["-c", code], { encoding: "utf8" });
  if (status !== 0) return "python3 is not installed";
  const [major = 0, minor = 0] = stdout.split(" ").map(Number);
  return major > 3 || minor >= (OLDEST[1] ?? 0) ? undefined : `python3 is ${major}.${minor}, older than 3.9`;
}

const reason = missing();
if (reason) console.warn(`The tests of the Python client are skipped: ${reason}.`);

describe.skipIf(reason)("the Python client", () => {
  let folder = "";
  let world: PythonWorld;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "slotkeeper-python-"));
    world = await PythonWorld.start(folder);
  }, 180_000);
  afterAll(async () => {
    await world?.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** The answers that the JavaScript client accepts and refuses; a property test compares it with the schemas. */
  async function answersFile(): Promise<string> {
    const names = fc.constantFrom("acquire", "renew", "release", "cancel");
    const cases = fc.sample(fc.tuple(names, changedAnswers), 2_000);
    const file = join(folder, "answers.json");
    await writeFile(
      file,
      JSON.stringify(cases.map(([name, body]) => ({ name, body, isAnswer: isAnswer(name, body) }))),
    );
    return file;
  }

  test.each(["test_behaviour", "test_cancellation", "test_untrusted"])(
    "%s passes",
    async (name) => {
      const env = {
        ...cleanEnvironment(),
        PYTHONPATH: join(PYTHON, "src"),
        PYTHONDONTWRITEBYTECODE: "1",
        SLOTKEEPER_TEST_WORLD: JSON.stringify(world.addresses),
        SLOTKEEPER_TEST_ANSWERS: await answersFile(),
      };
      const args = ["-W", "error", "-m", "unittest", "-v", name];
      const { stderr } = await promisify(execFile)("python3", args, { cwd: join(PYTHON, "tests"), env });
      expect(stderr).toMatch(/^Ran [1-9]\d* tests? in [\d.]+s\s+OK$/m);
    },
    300_000,
  );

  test("all files of tests are run", async () => {
    const files = (await readdir(join(PYTHON, "tests"))).filter((file) => file.startsWith("test_"));
    expect(files.sort()).toEqual(["test_behaviour.py", "test_cancellation.py", "test_untrusted.py"]);
  });
});
