/** `@slotkeeper/server/journal`: a memory store that survives its process, and the parts it is made of. */
export type { AppendFile, JournalDisk, PreparedFile } from "./disk.ts";
export {
  JournalCorruptError,
  JournalFormatError,
  JournalLockedError,
  JournalPathError,
  StoreUnwritableError,
} from "./errors.ts";
export { encodeFirstLine, encodeFrame, type Frame, FrameDamage, type Frames, readFrames } from "./frame.ts";
export type { JournalEvent, JournalHealth } from "./journal.ts";
export { type JournaledMemoryStore, type JournaledStoreOptions, openJournaledMemoryStore } from "./open-journal.ts";
export { thisProcess } from "./process-identity.ts";
export { ProcessLock, type ProcessLockOptions } from "./process-lock.ts";
