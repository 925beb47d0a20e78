import { type FileHandle, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { AppendFile, JournalDisk, PreparedFile } from "./disk.ts";

/** A file of the machine. It holds slot tokens and signing keys: only its owner may read it. */
export class NodeDisk implements JournalDisk {
  readonly #path: string;
  readonly #successor: string;

  constructor(path: string) {
    this.#path = path;
    this.#successor = `${path}.new`;
  }

  async read(): Promise<Uint8Array | undefined> {
    try {
      return await readFile(this.#path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  async prepare(content: Uint8Array): Promise<PreparedFile> {
    const handle = await open(this.#successor, "w", 0o600);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } catch (error) {
      await handle.close().catch(() => {});
      await rm(this.#successor, { force: true }).catch(() => {});
      throw error;
    }
    return { commit: () => this.#commit(handle) };
  }

  async #commit(handle: FileHandle): Promise<AppendFile> {
    try {
      await rename(this.#successor, this.#path);
      await syncFolder(dirname(this.#path));
    } catch (error) {
      await handle.close().catch(() => {});
      throw error;
    }
    return new NodeAppendFile(handle);
  }
}

/** The handle stays where the last write ended, whatever the file is called by now. */
class NodeAppendFile implements AppendFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async append(bytes: Uint8Array): Promise<void> {
    await this.#handle.writeFile(bytes);
    await this.#handle.datasync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

/** A rename is durable when its folder is. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
