/**
 * What the journal needs from a disk: one file that is replaced as a whole or appended to. Every promise here survives
 * a crash.
 */
export interface JournalDisk {
  /** Returns `undefined` if there is no such file. */
  read(): Promise<Uint8Array | undefined>;
  /** Writes a successor next to the file. If that fails, the file is unchanged and there is no successor. */
  prepare(content: Uint8Array): Promise<PreparedFile>;
}

/** A new journal file that has not replaced the old one yet. */
export interface PreparedFile {
  /**
   * Moves it to the place of the file. After a failure, either file may be there. Rejects with a `JournalReplacedError`
   * if the file at the path is not the one that was last read or written.
   */
  commit(): Promise<AppendFile>;
}

/** The journal while it is open. */
export interface AppendFile {
  /**
   * Resolves when the bytes are on the disk, in the file that is the journal. After a failure any part of them may be
   * there, and nothing more may be appended.
   */
  append(bytes: Uint8Array): Promise<void>;
  /**
   * Rejects if the file has changed since it was written; with a `JournalReplacedError` if another file has taken its
   * place.
   */
  check(): Promise<void>;
  close(): Promise<void>;
}
