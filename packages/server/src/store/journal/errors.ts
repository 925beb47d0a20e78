/**
 * The errors of a journal. All except the last two prevent a start. A `StoreUnwritableError` ends by itself when the
 * disk works again.
 */

/** A journal that cannot be used. `path` is its file. */
class JournalError extends Error {
  readonly path: string;

  constructor(path: string, problem: string) {
    super(`The journal ${path} ${problem}`);
    this.path = path;
  }
}

/** The journal is damaged in its middle. The start is refused, and nothing is changed. */
export class JournalCorruptError extends JournalError {
  override readonly name = "JournalCorruptError";
  readonly code = "JOURNAL_DAMAGED";
  /** The byte at which the damage begins. Everything before it is intact. */
  readonly offset: number;

  constructor(path: string, offset: number, damage: string) {
    super(
      path,
      `is damaged at byte ${offset}: ${damage}. Nothing was changed. Restore a good copy; or, ` +
        `if you can lose the leases and sessions recorded after that, truncate the file to ${offset} bytes (0: move it away).`,
    );
    this.offset = offset;
  }
}

/**
 * Another version of slotkeeper wrote the journal, in a format that this one cannot read. The start is refused, and
 * nothing is changed.
 */
export class JournalFormatError extends JournalError {
  override readonly name = "JournalFormatError";
  readonly code = "JOURNAL_FORMAT";
  /** The format that the journal has. */
  readonly format: number;

  constructor(path: string, format: number, known: number) {
    const age = format > known ? "a newer" : "an older";
    const reads = format > known ? `up to ${known}` : `only ${known}`;
    super(
      path,
      `was written by ${age} version of slotkeeper (format ${format}, this one reads ${reads}). ` +
        "Nothing was changed. Start that version, or choose another file.",
    );
    this.format = format;
  }
}

/** Another process uses the journal. The start is refused. */
export class JournalLockedError extends JournalError {
  override readonly name = "JournalLockedError";
  readonly code = "JOURNAL_LOCKED";

  constructor(path: string, holder: string) {
    super(path, `is in use by ${holder}. Two processes must not share a journal: each would grant every slot.`);
  }
}

/** The path has something that a journal must not replace, or that its lock cannot protect. */
export class JournalPathError extends JournalError {
  override readonly name = "JournalPathError";
  readonly code = "JOURNAL_PATH";

  constructor(path: string, problem: string) {
    super(path, `cannot be used: ${problem}`);
  }
}

/** Another file has taken the place of the open journal: another process may already use it. */
export class JournalReplacedError extends Error {
  override readonly name = "JournalReplacedError";

  constructor(path: string) {
    super(`another file has taken the place of ${path}`);
  }
}

/**
 * The call did not take effect, or may have taken effect and cannot be answered. Repeat it when the journal is
 * writable.
 */
export class StoreUnwritableError extends Error {
  override readonly name = "StoreUnwritableError";
  readonly code = "JOURNAL_UNWRITABLE";
  readonly retryable = true;
}
