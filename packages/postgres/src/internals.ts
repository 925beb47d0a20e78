/** `@slotkeeper/postgres/internals`: for the tests and scripts of this repository. It may change in any version. */
export { assertSchema } from "./migrate/migrate.ts";
export { type Migration, readMigrations } from "./migrate/migration-files.ts";
export { commitArguments } from "./store/commit-arguments.ts";
export { SCHEMA_NUMBER } from "./store/sql-store.ts";
