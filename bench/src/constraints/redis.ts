/** A fresh Redis in a temporary folder, without persistence. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Why there is no Redis; `undefined` if there is one. */
export function missingRedis(): string | undefined {
  const { error } = spawnSync("redis-server", ["--version"]);
  return error === undefined ? undefined : "there is no `redis-server` (Debian: apt-get install redis-server)";
}

export async function startRedis(): Promise<{ address: string; stop: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-redis-"));
  const port = await freePort();
  const settings = ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"];
  const child = spawn("redis-server", settings, { stdio: ["ignore", "pipe", "inherit"] });
  const endWithThis = () => child.kill("SIGKILL");
  process.once("exit", endWithThis);
  const lines = createInterface({ input: child.stdout });
  await new Promise<void>((resolve, reject) => {
    lines.on("line", (line) => line.includes("Ready to accept connections") && resolve());
    child.once("exit", (code) => reject(new Error(`redis-server ended with ${code}`)));
  });
  const stop = async () => {
    child.kill("SIGKILL");
    await once(child, "close");
    process.off("exit", endWithThis);
    rmSync(folder, { recursive: true });
  };
  return { address: `redis://127.0.0.1:${port}`, stop };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
