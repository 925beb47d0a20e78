/** `@slotkeeper/server`: the service over HTTP. */

export {
  DatabaseError,
  MigrateError,
  type MigrationState,
  migrate,
  migrationScript,
  migrationStates,
  SchemaError,
  schemaProblem,
} from "@slotkeeper/postgres";
export type { ServiceHistory, ServiceState } from "@slotkeeper/protocol";
export { type Advice, sentenceOf } from "./config/advice.ts";
export { effectiveConfig } from "./config/config-source.ts";
export { ConfigError, ControllerError } from "./config/errors.ts";
export { type ConfigSources, type LoadedConfig, loadConfig } from "./config/load-config.ts";
export { formatPrinted, type PrintedKey, printedKeys } from "./config/print-config.ts";
export type { ShutdownTimes } from "./config/settings.ts";
export { type Diagnosis, diagnose } from "./doctor/diagnose.ts";
export { CHECKS, type Check, type Finding, type FindingCode, type Severity } from "./doctor/finding.ts";
export { LogSink } from "./log/log-sink.ts";
export { Service, type ServiceInit } from "./service.ts";
export {
  JournalCorruptError,
  JournalFormatError,
  JournalLockedError,
  JournalPathError,
} from "./store/journal/errors.ts";
export { type MigrationTarget, migrationSchema, migrationTarget } from "./store/migration-target.ts";
export { VERSION } from "./version.ts";
