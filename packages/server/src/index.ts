/** `@slotkeeper/server`: the service over HTTP. */

export {
  DatabaseError,
  MigrateError,
  type MigrationState,
  migrate,
  migrationScript,
  migrationStates,
  SchemaError,
} from "@slotkeeper/postgres";
export type { ServiceHistory, ServiceState } from "@slotkeeper/protocol";
export { ConfigError } from "./config/config-error.ts";
export { type ConfigSources, type LoadedConfig, loadConfig } from "./config/load-config.ts";
export { formatPrinted, type PrintedKey, printedKeys } from "./config/print-config.ts";
export { ControllerError } from "./control-plane/controller-error.ts";
export { effectiveConfig } from "./control-plane/effective-config.ts";
export { JournalCorruptError, JournalLockedError, JournalPathError } from "./journal/errors.ts";
export { LogSink } from "./log/log-sink.ts";
export { Service, type ServiceInit, type StopTimes } from "./service.ts";
export { type MigrationTarget, migrationSchema, migrationTarget } from "./store/migration-target.ts";
export { VERSION } from "./version.ts";
