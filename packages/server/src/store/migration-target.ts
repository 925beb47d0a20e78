import { ConfigError } from "../config/errors.ts";
import type { LoadedConfig } from "../config/load-config.ts";
import { backendMode } from "../config/settings.ts";

/** The database and schema that a migration changes. */
export interface MigrationTarget {
  readonly dsn: string;
  readonly schema: string;
}

/**
 * The database of a configuration in any mode: a database that is used through PostgREST is also migrated directly.
 * Throws a `ConfigError` if there is none.
 */
export function migrationTarget({ tree }: LoadedConfig): MigrationTarget {
  const { dsn } = tree.backend.postgres;
  if (dsn === undefined) {
    const mode = backendMode(tree);
    const reason = mode === "memory" ? "the memory store has no schema" : "PostgREST cannot change one";
    throw new ConfigError([
      `\`backend.postgres.dsn\` is required to migrate: \`backend.mode\` is "${mode}", and ${reason}`,
    ]);
  }
  return { dsn, schema: migrationSchema({ tree }) };
}

/** The schema of the tables: `backend.postgres.schema`, by default `public`. */
export function migrationSchema({ tree }: Pick<LoadedConfig, "tree">): string {
  return tree.backend.postgres.schema;
}
