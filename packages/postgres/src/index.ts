/** `@slotkeeper/postgres`: Slotkeeper on PostgreSQL. */
export { parseDsn } from "./connection/parse-dsn.ts";
export { type ClockReading, DatabaseExam, OLDEST_POSTGRES, type ServerFacts } from "./doctor/database-exam.ts";
export type { MissingRight } from "./doctor/missing-rights.ts";
export { type NotificationProbe, probeNotifications } from "./doctor/notification-probe.ts";
export { explainFailure, MigrateError } from "./failures/explain-failure.ts";
export { STORE_PROBLEMS, type StoreProblem } from "./failures/failure-table.ts";
export { type MigrateOptions, migrate, migrationStates } from "./migrate/migrate.ts";
export { checkSchemaName, migrationScript } from "./migrate/migration-step.ts";
export { type MigrationState, SchemaError, type SchemaProblem, schemaProblem } from "./migrate/schema-state.ts";
export { parseBaseUrl } from "./postgrest/base-url.ts";
export { PostgrestStore, type PostgrestStoreOptions } from "./postgrest/postgrest-store.ts";
export { DatabaseError } from "./store/database-error.ts";
export { PostgresStore, type PostgresStoreOptions } from "./store/postgres-store.ts";
