import { randomBytes } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { NodeDisk } from "./node-disk.ts";
import { framesOf, trueName } from "./open-journal.ts";
import { lockHolder } from "./process-lock.ts";

export interface JournalFacts {
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
export async function examineJournal(path: string): Promise<JournalFacts> {
  const file = await trueName(path);
  const content = (await new NodeDisk(file).read()) ?? new Uint8Array();
  const { tornBytes } = framesOf(file, content);
  return { bytes: content.length, tornBytes, holder: await lockHolder(file) };
}

/**
 * Throws the error of the system if a service could not write its journal here. The file is replaced by a new one from
 * time to time, so the folder must allow new files. Leaves nothing behind.
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
