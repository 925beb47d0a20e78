import { PostgresStore, PostgrestStore, type StoreProblem } from "@slotkeeper/postgres";
import { type HostStore, MemoryStore, type StoreGauges, type StoreHealth } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { Backend } from "../config/settings.ts";
import type { Logger } from "../log/logger.ts";
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
  const {
    store,
    clock: storeClock,
    tokenKeys,
    health: journalHealth,
    close,
  } = await openJournaledMemoryStore({
    path,
    clock,
    graceMs,
    newTokenKey,
    onEvent: (event) => logJournalEvent(log, path, event),
  });
  const description = `memory, journal ${path}`;
  const health = (): OpenStoreHealth => {
    const found = journalHealth();
    if (found.isWritable) return { isReady: true };
    const detail = "The journal cannot be written: nothing is granted until it can";
    return { isReady: false, reason: "JOURNAL_UNWRITABLE", detail, error: new Error(found.reason) };
  };
  return { store, clock: storeClock, description, tokenKeys, health, close };
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

function logJournalEvent(log: Logger, path: string, event: JournalEvent): void {
  const { type: _, ...fields } = event;
  switch (event.type) {
    case "opened":
      log.info("journal opened", { path, ...fields });
      if (event.aheadMs !== 0) log.warn(CLOCK_CHANGED, { path, aheadMs: Math.round(event.aheadMs) });
      return;
    case "compacted":
      log.debug("journal compacted", { path, ...fields });
      return;
    case "compaction-failed":
      log.warn("not enough disk space to compact the journal: it continues to grow", { path, ...fields });
      return;
    case "unwritable":
      log.error("the journal cannot be written: nothing is granted until it can", { path, ...fields });
      return;
    case "writable":
      log.info("the journal can be written again", { path });
      return;
    case "lock-lost":
      log.error("another process has taken over the journal: this process grants nothing more", { path });
  }
}
