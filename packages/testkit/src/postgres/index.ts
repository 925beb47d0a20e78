/** `@slotkeeper/testkit/postgres`: a real PostgreSQL for tests and benchmarks, with nothing installed. */
export { dumpSchema } from "./dump-schema.ts";
export {
  canLimitData,
  type PostgresCommand,
  type PostgresOptions,
  type PostgresServer,
  startPostgres,
} from "./postgres-server.ts";
export { dsnOf, onServer, openCluster, type TestCluster } from "./test-cluster.ts";
export { TestDatabase, type TestDatabaseOptions } from "./test-database.ts";
