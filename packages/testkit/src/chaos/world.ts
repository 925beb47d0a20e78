import { createHash } from "node:crypto";
import { Client } from "pg";
import type { Fleet } from "../fleet/fleet.ts";
import type { RoundRobinProxy } from "../fleet/round-robin-proxy.ts";
import type { Random } from "../random/random.ts";
import type { ChaosLoad } from "./chaos-load.ts";
import type { InstanceCounts } from "./instance-counts.ts";

/** What a fault can act on. */
export interface World {
  readonly fleet: Fleet;
  readonly proxy: RoundRobinProxy;
  readonly load: ChaosLoad;
  readonly counts: InstanceCounts;
  readonly random: Random;
  /** Resolves after this time, or at once if the run ends early; then each fault reverts what it has done. */
  readonly pause: (ms: number) => Promise<void>;
}

/** Runs work on its own connection, which may be cut at any time. */
export async function asAdmin<T>({ fleet }: World, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({
    connectionString: fleet.dsn,
    application_name: "chaos",
    connectionTimeoutMillis: 10_000,
  });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** The key under which the store keeps a host. */
export function hostKey(hostname: string): string {
  return createHash("sha256").update(hostname).digest("hex");
}
