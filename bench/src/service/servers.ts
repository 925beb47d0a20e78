import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { commandIn, THIS_CHECKOUT } from "@slotkeeper/testkit/fleet";
import { startDatabase } from "./database.ts";
import type { Waiting } from "./load/slot-client.ts";
import type { Scenario, SubjectId } from "./scenario.ts";

export interface RunningServer {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

const own = (name: "bare" | "seed" | "seed-sql"): string =>
  fileURLToPath(new URL(`servers/${name}/main.js`, import.meta.url));

/** A hot host by the rules of the seed: many pending sessions, and waits longer than these. */
const WEIGHTED = { enabled: true, coldAvgWaitMs: 100, hotAvgWaitMs: 500 };

export function waitingOf(subject: SubjectId): Waiting {
  return subject === "seed" || subject === "seed-sql"
    ? { kind: "polling", everyMs: 500 }
    : { kind: "held", waitMs: 600_000 };
}

/** Starts the server of the subject with the limits of the scenario, in its own process. `checkout`: whose service it is. */
export async function startServer(
  subject: SubjectId,
  scenario: Scenario,
  checkout = THIS_CHECKOUT,
): Promise<RunningServer> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-bench-"));
  const isDurable = subject !== "postgres-unsynced";
  const database = /^postgres|-sql$/.test(subject) ? await startDatabase(checkout, isDurable) : undefined;
  const command = commandOf(subject, scenario, { folder, checkout, dsn: database?.dsn });
  const child = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  const url = await addressOf(child, () => errors);
  const stop = async () => {
    child.kill("SIGKILL");
    await once(child, "close");
    rmSync(folder, { recursive: true });
    await database?.stop();
  };
  return { url, pid: child.pid as number, stop };
}

interface Place {
  readonly folder: string;
  readonly checkout: string;
  readonly dsn: string | undefined;
}

function commandOf(subject: SubjectId, scenario: Scenario, { folder, checkout, dsn }: Place): string[] {
  if (subject === "bare") return [own("bare")];
  if (subject === "seed" || subject === "seed-sql") {
    const { slots, slotsPerBucket } = resolveHost(resolveOptions(scenario.fairQueue), undefined).policy;
    return [own(subject), String(slots), String(slotsPerBucket), ...(dsn === undefined ? [] : [dsn])];
  }
  const file = join(folder, "config.json");
  const weightedScheduler = subject.endsWith("weighted") ? { weightedScheduler: WEIGHTED } : {};
  const constraints = subject.endsWith("-constrained") ? scenario.constraints : {};
  const fairQueue = { ...scenario.fairQueue, ...constraints, ...weightedScheduler };
  const backend = dsn === undefined ? {} : { backend: { mode: "postgres", postgres: { dsn } } };
  writeFileSync(file, JSON.stringify({ listen: "127.0.0.1:0", logLevel: "warn", ...backend, fairQueue }));
  const data = subject === "journal" ? ["--data", join(folder, "journal")] : [];
  return [commandIn(checkout), "serve", "-c", file, "--json", ...data];
}

/** The first line that contains an address. */
async function addressOf(child: ChildProcess, errors: () => string): Promise<string> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  for await (const line of lines) {
    const { url } = JSON.parse(line) as { url?: string };
    if (url !== undefined) return url;
  }
  throw new Error(`The server did not start: ${errors()}`);
}
