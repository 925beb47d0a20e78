import { readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { JournalLockedError } from "./errors.ts";
import { isAlive, type ProcessIdentity, thisProcess } from "./process-identity.ts";

export interface ProcessLockOptions {
  /** What is guarded; the lock is a file beside it. */
  readonly path: string;
  readonly beatMs?: number;
  /** Called once, when another process took this one for dead. */
  readonly onLost: () => void;
}

/**
 * One process at a time, without a lock of the operating system (Node has none to offer). Each puts up a sign of its own,
 * then looks for others; with another living one there, it takes its own down.
 *
 * K1 two never hold it: the one that put its sign up later sees the other's. Signs appear whole (a rename) and have names
 * that are never used again, so taking down a dead one's cannot hit a living one's. K2 a crash leaves a sign behind, but
 * not in the way: a process that is gone, or whose number was given to another, holds nothing. K3 where the number cannot
 * be looked up (another container, another machine) the holder is alive while it touches its sign: it is watched for three
 * beats. K4 a holder looks at every beat whether its sign still stands.
 * Not promised: two that start at once may both step back; they try again some times. A holder elsewhere that stands still
 * for three beats is taken for dead, and may answer until its next beat.
 */
export class ProcessLock {
  readonly #sign: string;
  readonly #onLost: () => void;
  readonly #timer: NodeJS.Timeout;

  private constructor(sign: string, beatMs: number, onLost: () => void) {
    this.#sign = sign;
    this.#onLost = onLost;
    this.#timer = setInterval(() => void this.#beat(), beatMs);
    this.#timer.unref();
  }

  /** Throws `JournalLockedError`. */
  static async take({ path, beatMs = 1000, onLost }: ProcessLockOptions): Promise<ProcessLock> {
    const self = await thisProcess();
    let other = await putUpUnlessHeld(path, self, beatMs);
    for (let tries = 1; other !== undefined && tries < MOST_TRIES; tries++) {
      await pause(Math.random() * tries * LONGEST_STEP_BACK_MS);
      other = await putUpUnlessHeld(path, self, beatMs);
    }
    if (other === undefined) return new ProcessLock(signOf(path, self), beatMs, onLost);
    throw new JournalLockedError(path, `process ${other.pid}${other.host === self.host ? "" : ` on ${other.host}`}`);
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    await rm(this.#sign, { force: true });
  }

  async #beat(): Promise<void> {
    const now = new Date();
    const error = await utimes(this.#sign, now, now).catch((failure: NodeJS.ErrnoException) => failure);
    if (error?.code !== "ENOENT") return;
    clearInterval(this.#timer);
    this.#onLost();
  }
}

const MOST_TRIES = 5;
const LONGEST_STEP_BACK_MS = 20;

function signOf(path: string, { id }: ProcessIdentity): string {
  return `${path}.lock.${id}`;
}

/** Undefined: this process has it. Otherwise who does. */
async function putUpUnlessHeld(
  path: string,
  self: ProcessIdentity,
  beatMs: number,
): Promise<ProcessIdentity | undefined> {
  const sign = signOf(path, self);
  let isHeld = false;
  try {
    await writeFile(`${sign}.new`, JSON.stringify(self), { mode: 0o600 });
    await rename(`${sign}.new`, sign);
    const other = await livingHolder(path, self, beatMs);
    isHeld = other === undefined;
    return other;
  } finally {
    if (!isHeld) await Promise.all([sign, `${sign}.new`].map((file) => rm(file, { force: true })));
  }
}

async function livingHolder(path: string, self: ProcessIdentity, beatMs: number): Promise<ProcessIdentity | undefined> {
  const own = signOf(path, self);
  const signs = (await readdir(dirname(path)))
    .filter((name) => name.startsWith(`${basename(path)}.lock.`) && !name.endsWith(".new"))
    .map((name) => join(dirname(path), name))
    .filter((sign) => sign !== own);
  for (const sign of signs) {
    const other = await readSign(sign);
    if (other === undefined) continue;
    if ((await isAlive(other, self)) ?? (await isTouched(sign, 3 * beatMs))) return other;
    await rm(sign, { force: true });
  }
  return undefined;
}

/** Undefined: it was taken down meanwhile. */
async function readSign(file: string): Promise<ProcessIdentity | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as ProcessIdentity;
  } catch {
    throw new JournalLockedError(file, `something that is not Slotkeeper (${file} is no lock; remove it)`);
  }
}

async function isTouched(file: string, forMs: number): Promise<boolean> {
  const before = await touchedAt(file);
  await pause(forMs);
  return (await touchedAt(file)) !== before;
}

async function touchedAt(file: string): Promise<number | undefined> {
  return (await stat(file).catch(() => undefined))?.mtimeMs;
}
