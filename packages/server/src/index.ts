export { JournalCorruptError, JournalLockedError, StoreUnwritableError } from "./journal/errors.ts";
export type { JournalEvent, JournalHealth } from "./journal/journal.ts";
export {
  type JournaledMemoryStore,
  type JournaledStoreOptions,
  openJournaledMemoryStore,
} from "./journal/open-journal.ts";
