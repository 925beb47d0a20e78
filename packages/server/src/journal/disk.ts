/** What the journal asks of a disk: one file, replaced as a whole or appended to. Every promise here survives a crash. */
export interface JournalDisk {
  /** Undefined: there is no such file. */
  read(): Promise<Uint8Array | undefined>;
  /** Writes a successor beside the file. A failure leaves the file as it is, and no successor. */
  prepare(content: Uint8Array): Promise<PreparedFile>;
}

/** A new journal file that has not replaced the old one yet. */
export interface PreparedFile {
  /**
   * Puts it in the file's place. After a failure either may be there. Rejects with a `JournalReplacedError` where another
   * file than the one that was read or written last is in that place.
   */
  commit(): Promise<AppendFile>;
}

/** The journal while it is open. */
export interface AppendFile {
  /** Resolves when the bytes are safe in the file that is the journal. After a failure any part of them may be there: nothing more may be appended. */
  append(bytes: Uint8Array): Promise<void>;
  /** Rejects where the file is no longer as it was written; with a `JournalReplacedError` where another is in its place. */
  check(): Promise<void>;
  close(): Promise<void>;
}
