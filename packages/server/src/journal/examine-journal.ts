import { randomBytes } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { NodeDisk } from "./node-disk.ts";
import { framesOf, trueName } from "./open-journal.ts";
import { lockHolder } from "./process-lock.ts";

export interface JournalFacts {
  /** 0: there is no file yet. */
  readonly bytes: number;
  /** Half a write at the end, which the next start drops. */
  readonly tornBytes: number;
  /** The process that uses it; undefined: none. */
  readonly holder: string | undefined;
}

/**
 * Looks at a journal without opening it: a running service is not disturbed. Throws what
 * `framesOf` does, a `JournalPathError`, or what the system said of a file or folder that cannot be read.
 */
export async function examineJournal(path: string): Promise<JournalFacts> {
  const file = await trueName(path);
  const content = (await new NodeDisk(file).read()) ?? new Uint8Array();
  const { tornBytes } = framesOf(file, content);
  return { bytes: content.length, tornBytes, holder: await lockHolder(file) };
}

/**
 * Throws what the system says where a service could not write its journal: the file is replaced by a new one from time to time, so
 * the folder must allow new files. Leaves nothing behind.
 */
export async function tryWriting(path: string): Promise<void> {
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
