// The same bundle in Bun and Deno, from their npm packages. They are large, so they are fetched only for the long suite.
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundle } from "@slotkeeper/testkit/bundle";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startWorld } from "./fixture.ts";
import { expected } from "./smoke.ts";

const isLong = process.env["SLOTKEEPER_LONG"] === "1";

const RUNTIMES = {
  Bun: { package: "@oven/bun-linux-x64", version: "1.4.4", bin: "bin/bun", args: ["run"] },
  Deno: { package: "@deno/linux-x64-glibc", version: "2.9.6", bin: "deno", args: ["run", "--allow-net"] },
} as const;

describe.runIf(isLong && process.platform === "linux" && process.arch === "x64")("other runtimes", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "slotkeeper-runtimes-"));
    const packages = Object.values(RUNTIMES).map((runtime) => `${runtime.package}@${runtime.version}`);
    await run("npm", ["install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", ...packages]);
  }, 600_000);
  afterAll(() => rm(folder, { recursive: true }));

  test.each(Object.entries(RUNTIMES))("the client works in %s", async (name, runtime) => {
    const world = await startWorld();
    const file = join(folder, "smoke.mjs");
    const call = `smoke(${JSON.stringify(world.direct)}, ${JSON.stringify(name)})`;
    await writeFile(
      file,
      await bundle(
        `import { smoke } from "./smoke.ts";\n${call}.then((seen) => console.log(JSON.stringify(seen)));`,
        import.meta.dirname,
      ),
    );
    const seen = await run(join(folder, "node_modules", runtime.package, runtime.bin), [...runtime.args, file]);
    // JSON has no undefined.
    expect(JSON.parse(seen)).toEqual({ ...expected, busy: [null, "ACQUIRE_TIMEOUT"] });
    await world.until({ slots: 0, sessions: 0 });
  });
});

/** Standard output; fails with both outputs unless it ends with 0. */
function run(file: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args);
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
    child.on("error", reject);
    child.on("close", (code) =>
      code === 0 ? resolve(out) : reject(new Error(`${file} ended with ${code}: ${out}${err}`)),
    );
  });
}
