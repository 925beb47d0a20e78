import { PostgresStore, PostgrestStore, type StoreProblem } from "@slotkeeper/postgres";
import { type HostStore, MemoryStore, type StoreGauges, type StoreHealth } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { Backend } from "../config/settings.ts";
import type { Logger, LogLevel } from "../log/logger.ts";
import { nextTurn } from "../platform/clock.ts";
import { newTokenKey } from "../platform/node-crypto.ts";
import type { JournalEvent } from "./journal/journal.ts";
import { openJournaledMemoryStore } from "./journal/open-journal.ts";

export type OpenStoreHealth = StoreHealth<StoreProblem | "JOURNAL_UNWRITABLE">;

/** A store with its description, keys and checks. */
export interface OpenStore {
  readonly store: HostStore;
  /** The clock that the engine must use, if it is not the one of the process. */
  readonly clock?: Clock;
  /** A description for people: `memory`, `memory, journal /var/lib/slots.journal`. */
  readonly description: string;
  /** Keys that sign session tokens and outlive the process; `undefined` if the store keeps none. */
  readonly tokenKeys: readonly string[] | undefined;
  health(): OpenStoreHealth | Promise<OpenStoreHealth>;
  /** Absent if it has none. */
  gauges?(): StoreGauges;
  close(): Promise<void>;
}

/**
 * Opens the store. No other code creates one. Throws the errors of `openJournaledMemoryStore`, `PostgresStore.open` and
 * `PostgrestStore.open`. `graceMs` is how long waiters from before a restart keep their places until their clients poll
 * again.
 */
export async function openStore(backend: Backend, clock: Clock, log: Logger, graceMs: number): Promise<OpenStore> {
  if (backend.mode === "postgres") return openPostgres(backend);
  if (backend.mode === "postgrest") return openPostgrest(backend);
  if (backend.journal !== undefined) return openJournal(backend.journal, clock, log, graceMs);
  return {
    store: new MemoryStore({ clock, pause: nextTurn }),
    description: "memory (forgotten at exit)",
    tokenKeys: undefined,
    health: () => ({ isReady: true }),
    close: async () => {},
  };
}

async function openJournal(path: string, clock: Clock, log: Logger, graceMs: number): Promise<OpenStore> {
  const onEvent = (event: JournalEvent) => logJournalEvent(log, path, event);
  const journaled = await openJournaledMemoryStore({ path, clock, graceMs, newTokenKey, onEvent });
  const health = (): OpenStoreHealth => {
    const found = journaled.health();
    if (found.isWritable) return { isReady: true };
    const detail = "The journal cannot be written: nothing is granted until it can";
    return { isReady: false, reason: "JOURNAL_UNWRITABLE", detail, error: new Error(found.reason) };
  };
  return { ...journaled, description: `memory, journal ${path}`, health };
}

async function openPostgres({ dsn, schema, poolSize, listenDsn }: Backend & { mode: "postgres" }): Promise<OpenStore> {
  const store = await PostgresStore.open({ dsn, schema, poolSize, listenDsn });
  return withTokenKeys(store, `PostgreSQL, schema ${JSON.stringify(schema)}`);
}

async function openPostgrest({ baseUrl, authHeader, schema }: Backend & { mode: "postgrest" }): Promise<OpenStore> {
  const store = await PostgrestStore.open({ baseUrl, authHeader, schema });
  return withTokenKeys(
    store,
    `PostgREST at ${baseUrl}${schema === undefined ? "" : `, schema ${JSON.stringify(schema)}`}`,
  );
}

async function withTokenKeys(store: PostgresStore | PostgrestStore, description: string): Promise<OpenStore> {
  try {
    const tokenKeys = await store.tokenKeys(newTokenKey());
    const health = () => store.health();
    return { store, description, tokenKeys, health, gauges: () => store.gauges, close: () => store.close() };
  } catch (error) {
    await store.close();
    throw error;
  }
}

const CLOCK_CHANGED =
  "the clock was changed since the journal was last written: the service continues with the time of the journal";

const JOURNAL_LINES = {
  opened: ["info", "journal opened"],
  compacted: ["debug", "journal compacted"],
  "compaction-failed": ["warn", "not enough disk space to compact the journal: it continues to grow"],
  unwritable: ["error", "the journal cannot be written: nothing is granted until it can"],
  writable: ["info", "the journal can be written again"],
  "lock-lost": ["error", "another process has taken over the journal: this process grants nothing more"],
} as const satisfies { readonly [type in JournalEvent["type"]]: readonly [LogLevel, string] };

function logJournalEvent(log: Logger, path: string, event: JournalEvent): void {
  const { type, ...fields } = event;
  const [level, message] = JOURNAL_LINES[type];
  log[level](message, { path, ...fields });
  if (event.type === "opened" && event.aheadMs !== 0)
    log.warn(CLOCK_CHANGED, { path, aheadMs: Math.round(event.aheadMs) });
}
