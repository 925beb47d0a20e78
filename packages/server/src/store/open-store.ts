import { PostgresStore } from "@slotkeeper/postgres";
import { type HostStore, MemoryStore } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import { ConfigError } from "../config/config-error.ts";
import type { Backend } from "../config/settings.ts";
import { openJournaledMemoryStore } from "../journal/open-journal.ts";
import type { Logger } from "../log/logger.ts";
import { newTokenKey } from "../tokens/random-names.ts";
import { logJournalEvent } from "./log-journal-event.ts";

/** A store with what belongs to it. */
export interface OpenStore {
  readonly store: HostStore;
  /** For people: `memory`, `memory, journal /var/lib/slots.journal`. */
  readonly description: string;
  /** Keys that sign session tokens and outlive the process; undefined: the store keeps none. */
  readonly tokenKeys: readonly string[] | undefined;
  /** Whether it can grant now. */
  isReady(): boolean | Promise<boolean>;
  close(): Promise<void>;
}

/**
 * The only place where a store is made. Throws what `openJournaledMemoryStore` and `PostgresStore.open` do. `graceMs`: how
 * long waiters of an earlier life keep their places before their clients poll again.
 */
export async function openStore(backend: Backend, clock: Clock, log: Logger, graceMs: number): Promise<OpenStore> {
  if (backend.mode === "postgres") return openPostgres(backend);
  if (backend.mode === "postgrest") {
    throw new ConfigError(['`backend.mode` "postgrest" is not part of this version: it has "memory" and "postgres"']);
  }
  if (backend.journal !== undefined) return openJournal(backend.journal, clock, log, graceMs);
  return {
    store: new MemoryStore({ clock }),
    description: "memory (forgotten at exit)",
    tokenKeys: undefined,
    isReady: () => true,
    close: async () => {},
  };
}

async function openJournal(path: string, clock: Clock, log: Logger, graceMs: number): Promise<OpenStore> {
  const { store, tokenKeys, health, close } = await openJournaledMemoryStore({
    path,
    clock,
    graceMs,
    newTokenKey,
    onEvent: (event) => logJournalEvent(log, path, event),
  });
  const description = `memory, journal ${path}`;
  return { store, description, tokenKeys, isReady: () => health().isWritable, close };
}

async function openPostgres(backend: Backend & { mode: "postgres" }): Promise<OpenStore> {
  const { dsn, schema, poolSize, listenDsn } = backend;
  const store = await PostgresStore.open({ dsn, schema, poolSize, listenDsn });
  try {
    const tokenKeys = await store.tokenKeys(newTokenKey());
    const description = `PostgreSQL, schema ${JSON.stringify(schema)}`;
    return { store, description, tokenKeys, isReady: () => store.isReady(), close: () => store.close() };
  } catch (error) {
    await store.close();
    throw error;
  }
}
