import type { BigIntStats } from "node:fs";
import { constants, type FileHandle, lstat, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { JournalPathError, JournalReplacedError } from "./errors.ts";

/** Identifies a file, independent of its name. */
type FileId = Pick<BigIntStats, "dev" | "ino">;

/** Writes always append at the current end, so a file that another program has truncated shows by its size. */
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND | constants.O_NOFOLLOW;

/**
 * A file on a local disk. It contains slot tokens and signing keys, so only its owner may read it.
 *
 * DISK1  Only the journal itself is ever replaced. A path that is not a regular file is refused, and so is a file that
 *     has taken the place of the journal.
 * DISK2  A successor is always a new file. An existing file or link with that name is removed, not used.
 */
export class NodeDisk implements JournalDisk {
  readonly #path: string;
  readonly #successor: string;
  /** The file that is the journal; `undefined` if there was none. */
  #ours: FileId | undefined;

  constructor(path: string) {
    this.#path = path;
    this.#successor = `${path}.new`;
  }

  async read(): Promise<Uint8Array | undefined> {
    this.#ours = await regularFile(this.#path);
    return this.#ours === undefined ? undefined : await readFile(this.#path);
  }

  async prepare(content: Uint8Array): Promise<PreparedFile> {
    await rm(this.#successor, { force: true });
    const handle = await open(this.#successor, NEW_FILE, 0o600);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } catch (error) {
      await handle.close().catch(() => {});
      await rm(this.#successor, { force: true }).catch(() => {});
      throw error;
    }
    return { commit: () => this.#commit(handle, content.length) };
  }

  async #commit(handle: FileHandle, size: number): Promise<AppendFile> {
    try {
      const id = await handle.stat({ bigint: true });
      const there = await statsOf(this.#path);
      if (there !== undefined && !isSame(there, this.#ours)) throw new JournalReplacedError(this.#path);
      await rename(this.#successor, this.#path);
      this.#ours = id;
      await syncFolder(dirname(this.#path));
      return new NodeAppendFile(handle, this.#path, id, size);
    } catch (error) {
      await handle.close().catch(() => {});
      throw error;
    }
  }
}

/** The handle stays with the file even if its name changes, so both are compared after every write. */
class NodeAppendFile implements AppendFile {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #id: FileId;
  #size: number;
  #appends = 0;

  constructor(handle: FileHandle, path: string, id: FileId, size: number) {
    this.#handle = handle;
    this.#path = path;
    this.#id = id;
    this.#size = size;
  }

  async append(bytes: Uint8Array): Promise<void> {
    this.#appends++;
    await this.#handle.writeFile(bytes);
    await this.#handle.datasync();
    this.#size += bytes.length;
    this.#judge(await statsOf(this.#path));
  }

  async check(): Promise<void> {
    const appends = this.#appends;
    const there = await statsOf(this.#path);
    // If it was written in the meantime, that write has its own check.
    if (appends === this.#appends) this.#judge(there);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  #judge(there: BigIntStats | undefined): void {
    if (there === undefined) throw new Error("the file was deleted");
    if (!isSame(there, this.#id)) throw new JournalReplacedError(this.#path);
    if (there.size !== BigInt(this.#size)) {
      throw new Error(`the file has ${there.size} bytes where ${this.#size} were written: another program changed it`);
    }
  }
}

/** The file at the path, if there is one. Throws a `JournalPathError` if a journal must not replace it. */
export async function regularFile(path: string): Promise<FileId | undefined> {
  const there = await statsOf(path);
  if (there === undefined) return undefined;
  if (!there.isFile()) throw new JournalPathError(path, "it is not a regular file. Nothing was changed.");
  if (there.nlink > 1n) {
    const advice =
      "Each would have a lock of its own, and two processes would grant every slot. Remove the other name.";
    throw new JournalPathError(path, `the file has more than one name (a hard link). ${advice}`);
  }
  return there;
}

/** The status of the path itself, not of the target of a link. */
async function statsOf(path: string): Promise<BigIntStats | undefined> {
  return lstat(path, { bigint: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

function isSame(one: FileId, other: FileId | undefined): boolean {
  return one.dev === other?.dev && one.ino === other.ino;
}

/** A rename is durable only after a sync of its folder. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

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
