/** `@slotkeeper/postgres`: Slotkeeper on PostgreSQL. */
export { parseDsn } from "./connection/parse-dsn.ts";
export { assertSchema, type MigrateOptions, migrate, migrationStates } from "./migrate/migrate.ts";
export { explainFailure, MigrateError } from "./migrate/migrate-error.ts";
export { type Migration, readMigrations } from "./migrate/migration-files.ts";
export { migrationScript } from "./migrate/migration-step.ts";
export { SchemaError, type SchemaProblem } from "./migrate/schema-error.ts";
export type { MigrationState } from "./migrate/schema-state.ts";
export { DatabaseError } from "./store/database-error.ts";
export { PostgresStore, type PostgresStoreOptions, SCHEMA_NUMBER } from "./store/postgres-store.ts";
