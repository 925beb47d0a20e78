import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";

const root = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const SCRIPT = root("scripts/complete-lock.mjs");
const SUM = `sha512-${"A".repeat(86)}==`;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "slotkeeper-lock-"));
  const packages = {
    "": { name: "project" },
    "node_modules/tool": {
      version: "1.0.0",
      integrity: SUM,
      dev: true,
      optionalDependencies: { "@tool/linux-x64": "1.0.0", "@tool/darwin-arm64": "1.0.0" },
    },
    "node_modules/@tool/linux-x64": { version: "1.0.0", integrity: SUM, dev: true, optional: true },
    "node_modules/own": { resolved: "packages/own", link: true },
  };
  writeFileSync(join(folder, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages }));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A registry that has these packages, each with this integrity. */
async function registry(packages: Record<string, string>): Promise<string> {
  const server = createServer((request, response) => {
    const name = decodeURIComponent(request.url?.slice(1) ?? "");
    const integrity = packages[name];
    response.statusCode = integrity === undefined ? 404 : 200;
    const version = { name, version: "1.0.0", dist: { integrity } };
    response.end(JSON.stringify({ name, "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

async function complete(flag: string[], url = "http://127.0.0.1:9/"): Promise<{ code: number; out: string }> {
  const env = {
    ...process.env,
    npm_config_registry: url,
    npm_config_cache: join(folder, "cache"),
    npm_config_fetch_retries: "0",
  };
  return promisify(execFile)(process.execPath, [SCRIPT, ...flag], { cwd: folder, env }).then(
    ({ stdout }) => ({ code: 0, out: stdout }),
    (error: { code: number; stdout: string }) => ({ code: error.code, out: error.stdout }),
  );
}

const locked = () =>
  (JSON.parse(readFileSync(join(folder, "package-lock.json"), "utf8")) as { packages: Record<string, object> })
    .packages["node_modules/@tool/darwin-arm64"];

describe("complete-lock", () => {
  it("adds the package of another platform, and lists it because it has no integrity", async () => {
    const { code, out } = await complete([]);
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/Without integrity \(1\):\n {2}@tool\/darwin-arm64@1\.0\.0\n/),
    ]);
    expect(locked()).toEqual({ version: "1.0.0", dev: true, optional: true, cpu: ["arm64"], os: ["darwin"] });
  });

  it("--fill takes the integrity from the registry, and then --check passes", async () => {
    await complete([]);
    expect(await complete(["--check"])).toMatchObject({ code: 1 });
    const { out } = await complete(["--fill"], await registry({ "@tool/darwin-arm64": SUM }));
    expect(out).toContain("Every entry has an integrity.");
    expect(locked()).toMatchObject({ integrity: SUM });
    expect(await complete(["--check"])).toMatchObject({ code: 0 });
  });

  it("--fill leaves out what the registry does not have, and anything that is no integrity", async () => {
    await complete([]);
    for (const packages of [{}, { "@tool/darwin-arm64": "sha1-short" }] as Record<string, string>[]) {
      await complete(["--fill"], await registry(packages));
      expect(locked()).not.toHaveProperty("integrity");
    }
    expect(await complete(["--check"])).toMatchObject({ code: 1 });
  });
});

it("the entries of the lock file without integrity are optional tools of other platforms, as SECURITY.md says", () => {
  const { packages } = JSON.parse(readFileSync(root("package-lock.json"), "utf8")) as {
    packages: Record<string, { link?: true; integrity?: string; dev?: true; optional?: true }>;
  };
  const without = Object.entries(packages).filter(
    ([path, { link, integrity }]) => path.includes("node_modules/") && link !== true && integrity === undefined,
  );
  for (const [path, { dev, optional }] of without) expect([path, dev, optional]).toEqual([path, true, true]);
  expect(readFileSync(root("SECURITY.md"), "utf8")).toContain("`node scripts/complete-lock.mjs` lists them");
});
