import { migrate } from "@slotkeeper/postgres";
import { startPostgres } from "@slotkeeper/testkit/postgres";

export interface BenchDatabase {
  readonly dsn: string;
  stop(): Promise<void>;
}

/** Starts a server with the schema: a fresh one for every measurement, like the other subjects. */
export async function startDatabase(): Promise<BenchDatabase> {
  const server = await startPostgres();
  await migrate({ dsn: server.dsn });
  return server;
}
