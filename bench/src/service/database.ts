import { migrateBy } from "@slotkeeper/testkit/fleet";
import { startPostgres } from "@slotkeeper/testkit/postgres";

export interface BenchDatabase {
  readonly dsn: string;
  stop(): Promise<void>;
}

/**
 * Starts a server with the schema of the checkout: a fresh one for every measurement, like the other subjects. `isDurable`: it syncs
 * every commit, as users run it.
 */
export async function startDatabase(checkout: string, isDurable: boolean): Promise<BenchDatabase> {
  const server = await startPostgres({ isDurable });
  await migrateBy(checkout, server.dsn);
  return server;
}
