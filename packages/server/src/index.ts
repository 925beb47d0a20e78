/** `@slotkeeper/server`: the service over HTTP. */
export {
  JournalCorruptError,
  type JournalEvent,
  type JournaledMemoryStore,
  type JournaledStoreOptions,
  type JournalHealth,
  JournalLockedError,
  openJournaledMemoryStore,
  StoreUnwritableError,
} from "./journal/index.ts";
