import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import { startDatabase } from "../service/database.ts";

export interface Fleet {
  readonly dsn: string;
  readonly urls: readonly string[];
  stop(): Promise<void>;
}

const CLI = fileURLToPath(new URL("../../../packages/cli/bin/slotkeeper.mjs", import.meta.url));

/** Several real processes of the service on one PostgreSQL server of its own. */
export async function startFleet(instances: number, fairQueue: FairQueueConfig): Promise<Fleet> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-fleet-"));
  const database = await startDatabase();
  const file = join(folder, "config.json");
  const backend = { mode: "postgres", postgres: { dsn: database.dsn } };
  writeFileSync(file, JSON.stringify({ listen: "127.0.0.1:0", logLevel: "warn", backend, fairQueue }));
  const children = Array.from({ length: instances }, () =>
    spawn(process.execPath, [CLI, "serve", "-c", file, "--json"], { stdio: ["ignore", "pipe", "inherit"] }),
  );
  const kill = () => {
    for (const child of children) child.kill("SIGKILL");
  };
  // Whatever ends the benchmark ends its instances: one left behind keeps the terminal and logs without end.
  process.once("exit", kill);
  const stop = async () => {
    process.off("exit", kill);
    kill();
    await Promise.all(children.filter(({ exitCode }) => exitCode === null).map((child) => once(child, "close")));
    await database.stop();
    rmSync(folder, { recursive: true });
  };
  try {
    return { dsn: database.dsn, urls: await Promise.all(children.map(addressOf)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The first line that tells an address. */
async function addressOf(child: ChildProcess): Promise<string> {
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const { url } = JSON.parse(line) as { url?: string };
    if (url !== undefined) return url;
  }
  throw new Error("An instance of the fleet did not start.");
}
