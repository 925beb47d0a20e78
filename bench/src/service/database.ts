import { migrate } from "@slotkeeper/postgres";
import { startPostgres } from "@slotkeeper/testkit/postgres";

export interface BenchDatabase {
  readonly dsn: string;
  stop(): Promise<void>;
}

/** A server of its own with the schema in it: fresh for every measurement, as the other subjects are. */
export async function startDatabase(): Promise<BenchDatabase> {
  const server = await startPostgres();
  await migrate({ dsn: server.dsn });
  return server;
}
