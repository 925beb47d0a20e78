import { randomBytes } from "node:crypto";
import { open, rm } from "node:fs/promises";
import type { ListenAddress } from "../config/settings.ts";
import { JournalCorruptError, JournalFormatError, JournalPathError } from "../store/journal/errors.ts";
import { NodeDisk } from "../store/journal/node-disk.ts";
import { framesOf, trueName } from "../store/journal/open-journal.ts";
import { lockHolder } from "../store/journal/process-lock.ts";
import { systemWords } from "../words/system-words.ts";
import { isServedAt } from "./check-service.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

/** The memory store, with or without a journal. */
export async function journalFindings(path: string | undefined, listen: ListenAddress): Promise<readonly Finding[]> {
  if (path === undefined) return [ok("journal", "None: slots and waiters are forgotten when the service stops.")];
  let facts: JournalFacts;
  try {
    facts = await examineJournal(path);
  } catch (error) {
    return [unusable(path, error)];
  }
  const unwritable = await tryWriting(path).then(
    () => [],
    (error: unknown) => [unwritableFolder(path, error)],
  );
  const { holder } = facts;
  if (unwritable.length > 0) return unwritable;
  if (holder !== undefined && !(await isServedAt(listen))) return [held(path, holder)];
  return [
    ok(
      "journal",
      `${path}: ${stateOf(facts)}, ${holder === undefined ? "free" : `in use by ${holder}`}.${endOf(facts)}`,
    ),
  ];
}

function stateOf({ bytes }: JournalFacts): string {
  return bytes === 0 ? "no data yet" : `${bytes} bytes, undamaged`;
}

/** While a process uses the file, its last record may be half written. */
function endOf({ tornBytes, holder }: JournalFacts): string {
  if (tornBytes === 0 || holder !== undefined) return "";
  return ` Its last record is incomplete (${tornBytes} bytes), which is normal after a crash: the next start drops it.`;
}

const GRANTS_NOTHING =
  "The service grants a slot only after it has recorded it, so it grants nothing now, and /readyz is 503.";

const OTHER_PATH = "Choose another path in `backend.memory.journal` or with --data.";

function unusable(path: string, error: unknown): Finding {
  if (error instanceof JournalCorruptError) {
    const why = "`slotkeeper serve` refuses to start, because it would lose some slots and waiters.";
    const fix = `Restore a good copy, or truncate the file to ${error.offset} bytes if you can lose everything that was recorded later.`;
    return problem("journal", { code: "JOURNAL_DAMAGED", found: error.message, why, fix });
  }
  if (error instanceof JournalFormatError) {
    const why = "`slotkeeper serve` refuses to start, because it would misread the slots and waiters in it.";
    const fix = `Run the version of slotkeeper that wrote it. ${OTHER_PATH}`;
    return problem("journal", { code: "JOURNAL_FORMAT", found: error.message, why, fix });
  }
  if (error instanceof JournalPathError) {
    const why = "`slotkeeper serve` refuses to start, because a journal must be a regular file with one name.";
    const fix = OTHER_PATH;
    return problem("journal", { code: "JOURNAL_PATH", found: error.message, why, fix });
  }
  return unwritableFolder(path, error);
}

function unwritableFolder(path: string, error: unknown): Finding {
  return problem("journal", {
    code: "JOURNAL_UNWRITABLE",
    found: `The journal ${path} cannot be read or written: ${systemWords(error)}.`,
    why: GRANTS_NOTHING,
    fix: "Create its folder, give the service's user the right to write there, and make room on the disk.",
  });
}

function held(path: string, holder: string): Finding {
  return warning("journal", {
    code: "JOURNAL_LOCKED",
    found: `The journal ${path} is in use by ${holder}, and no service answers at the configured address.`,
    why: "A service with this configuration cannot open the journal, and does not start.",
    fix: "If that process is the service, but with another address, run the doctor with its configuration. Otherwise stop it, or choose another file.",
  });
}

interface JournalFacts {
  /** The size of the file; 0 if there is no file yet. */
  readonly bytes: number;
  /** The size of an incomplete write at the end, which the next start drops. */
  readonly tornBytes: number;
  /** The process that uses the journal; `undefined` if there is none. */
  readonly holder: string | undefined;
}

/**
 * Examines a journal without opening it, so a running service is not disturbed. Throws the errors of `framesOf`, a
 * `JournalPathError`, or the error of the system if a file or folder cannot be read.
 */
async function examineJournal(path: string): Promise<JournalFacts> {
  const file = await trueName(path);
  const content = (await new NodeDisk(file).read()) ?? new Uint8Array();
  const { tornBytes } = framesOf(file, content);
  return { bytes: content.length, tornBytes, holder: await lockHolder(file) };
}

/**
 * Throws the error of the system if a service could not write its journal here. The file is replaced by a new one from
 * time to time, so the folder must allow new files. Leaves nothing behind.
 */
async function tryWriting(path: string): Promise<void> {
  const trial = `${await trueName(path)}.doctor-${randomBytes(6).toString("hex")}`;
  const handle = await open(trial, "wx", 0o600);
  try {
    await handle.writeFile("x");
    await handle.sync();
  } finally {
    await handle.close();
    await rm(trial, { force: true });
  }
}
