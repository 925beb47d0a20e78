import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import { addressOf, Fleet, THIS_CHECKOUT } from "@slotkeeper/testkit/fleet";

const POSTGREST = fileURLToPath(new URL("../../../packages/testkit/bin/postgrest.mjs", import.meta.url));

/** How instances reach the database. */
export type Through = "postgres" | "postgrest";

export type BenchFleet = Pick<Fleet, "dsn" | "urls" | "stop">;

/**
 * Several real processes of the service on their own PostgreSQL server, which counts its functions for `DatabaseWatch`.
 */
export async function startFleet(
  instances: number,
  fairQueue: FairQueueConfig,
  { through, isDurable, checkout = THIS_CHECKOUT }: { through: Through; isDurable: boolean; checkout?: string },
): Promise<BenchFleet> {
  const options = { instances, fairQueue, checkout, postgres: { isDurable, settings: { track_functions: "pl" } } };
  if (through === "postgres") return Fleet.start(options);
  let postgrest: ChildProcess | undefined;
  const backend = async (dsn: string) => {
    postgrest = startPostgrest(dsn);
    return { postgrest: { baseUrl: await addressOf(postgrest) } };
  };
  const fleet = await Fleet.start({ ...options, backend });
  const stop = async () => {
    await fleet.stop();
    postgrest?.kill("SIGKILL");
  };
  return { dsn: fleet.dsn, urls: fleet.urls, stop };
}

/** Starts the stand-in as a separate process. Every caller has the role that owns the schema. */
function startPostgrest(dsn: string): ChildProcess {
  const command = [POSTGREST, "--dsn", dsn, "--anon-role", new URL(dsn).username];
  return spawn(process.execPath, command, { stdio: ["pipe", "pipe", "inherit"] });
}
