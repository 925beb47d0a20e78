import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";

const SCRIPT = fileURLToPath(new URL("../../../scripts/publish-packed.mjs", import.meta.url));
const execute = promisify(execFile);

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "slotkeeper-publish-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function pack(name: string, dependencies: Record<string, string> = {}): Promise<void> {
  mkdirSync(join(folder, name, "package"), { recursive: true });
  const manifest = JSON.stringify({ name, version: "1.0.0", dependencies });
  writeFileSync(join(folder, name, "package", "package.json"), manifest);
  await execute("tar", ["-czf", join(folder, `${name}.tgz`), "-C", join(folder, name), "package"]);
}

/** A registry that has these packages; what it was sent, in order. */
async function registry(has: readonly string[], status = 404): Promise<{ url: string; sent: string[] }> {
  const sent: string[] = [];
  const server = createServer((request, response) => {
    const name = decodeURIComponent(request.url?.slice(1) ?? "");
    request.resume();
    if (request.method === "PUT") sent.push(name);
    const isThere = has.includes(name) || request.method === "PUT";
    response.statusCode = isThere ? 200 : status;
    const versions = { "1.0.0": { name, version: "1.0.0", dist: {} } };
    response.end(isThere ? JSON.stringify({ name, "dist-tags": { latest: "1.0.0" }, versions }) : "{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, sent };
}

function publish(url: string): Promise<{ stdout: string }> {
  const env = {
    ...process.env,
    npm_config_registry: url,
    npm_config_cache: join(folder, "cache"),
    npm_config_fetch_retries: "0",
    [`npm_config_//${new URL(url).host}/:_authToken`]: "a-token-of-this-test",
  };
  return execute(process.execPath, [SCRIPT, folder], { env });
}

it("publishes dependencies first, and leaves out the versions that the registry has", async () => {
  await pack("a-command", { "b-service": "1.0.0", elsewhere: "^2" });
  await pack("b-service", { "c-library": "1.0.0" });
  await pack("c-library");
  await pack("d-there");
  const { url, sent } = await registry(["d-there"]);
  const { stdout } = await publish(url);
  expect(sent).toEqual(["c-library", "b-service", "a-command"]);
  expect(stdout).toContain("d-there@1.0.0 is published already");
});

it("publishes nothing if the registry does not say what it has", async () => {
  await pack("a-library");
  const { url, sent } = await registry([], 500);
  await expect(publish(url)).rejects.toMatchObject({ stderr: expect.stringContaining("did not say whether") });
  expect(sent).toEqual([]);
});
