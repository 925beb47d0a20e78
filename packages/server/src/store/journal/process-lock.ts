import { readdir, readFile, rename, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { JournalLockedError } from "./errors.ts";
import { isAlive, type ProcessIdentity, thisProcess } from "./process-identity.ts";

/** Options of a `ProcessLock`. */
export interface ProcessLockOptions {
  /** The protected file. The lock is a file next to it. */
  readonly path: string;
  /** How often the holder updates its lock file, in milliseconds. */
  readonly beatMs?: number | undefined;
  /** Called once, if another process has treated this one as dead and taken the lock. */
  readonly onLost: () => void;
  /** Called at every beat while the lock is held. */
  readonly onBeat?: () => void;
}

/**
 * A lock for one process at a time, without a lock of the operating system (Node has none). Each process creates its
 * own lock file, then looks for others. If it finds the lock file of another live process, it removes its own.
 *
 * LOCK1  Two processes never hold it: the one whose file was created later sees the other. Lock files appear complete
 *     (by a rename) and have names that are never reused, so removing the file of a dead process cannot hit a live one.
 * LOCK2  A crash leaves a lock file behind that blocks no process: a process that has ended (also a zombie), or whose
 *     number was reused, holds nothing.
 * LOCK3  If the number cannot be looked up (another container, another machine), the holder counts as alive while it
 *     updates its lock file. It is watched for three beats.
 * LOCK4  At every beat the holder checks whether its lock file still exists. If it was removed, the holder creates it
 *     again, as at a start, unless another process has created its own; then that process has the lock.
 *
 * Not promised: two processes that start at the same time may both step back; they retry several times. A holder
 * elsewhere that stands still for three beats counts as dead, and may answer until its next beat.
 */
export class ProcessLock {
  readonly #init: ProcessLockOptions & { readonly beatMs: number };
  readonly #self: ProcessIdentity;
  readonly #timer: NodeJS.Timeout;
  #isBeating = false;
  #isReleased = false;

  private constructor(self: ProcessIdentity, init: ProcessLockOptions & { readonly beatMs: number }) {
    this.#init = init;
    this.#self = self;
    this.#timer = setInterval(() => void this.#beat(), init.beatMs);
    this.#timer.unref();
  }

  /** Throws `JournalLockedError`. */
  static async take({ beatMs = BEAT_MS, ...more }: ProcessLockOptions): Promise<ProcessLock> {
    const { path } = more;
    const self = await thisProcess();
    let other = await putUpUnlessHeld(path, self, beatMs);
    for (let tries = 1; other !== undefined && tries < MOST_TRIES; tries++) {
      await pause(Math.random() * tries * LONGEST_STEP_BACK_MS);
      other = await putUpUnlessHeld(path, self, beatMs);
    }
    if (other === undefined) return new ProcessLock(self, { ...more, beatMs });
    throw new JournalLockedError(path, holderName(other, self));
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    clearInterval(this.#timer);
    await rm(signOf(this.#init.path, this.#self), { force: true });
  }

  async #beat(): Promise<void> {
    if (this.#isBeating) return;
    this.#isBeating = true;
    try {
      const now = new Date();
      const sign = signOf(this.#init.path, this.#self);
      const error = await utimes(sign, now, now).catch((failure: NodeJS.ErrnoException) => failure);
      if (this.#isReleased) return;
      if (error?.code === "ENOENT") await this.#putUpAgain(sign);
      else this.#init.onBeat?.();
    } finally {
      this.#isBeating = false;
    }
  }

  async #putUpAgain(sign: string): Promise<void> {
    const { path, beatMs, onLost } = this.#init;
    // If the folder cannot be read or written, it is tried again at the next beat.
    const other = await putUpUnlessHeld(path, this.#self, beatMs).catch(() => undefined);
    if (this.#isReleased) await rm(sign, { force: true });
    if (other === undefined || this.#isReleased) return;
    clearInterval(this.#timer);
    onLost();
  }
}

function holderName(other: ProcessIdentity, self: ProcessIdentity): string {
  if (other === NAMELESS) return "a process that had no room to write its name";
  return `process ${other.pid}${other.host === self.host ? "" : ` on ${other.host}`}`;
}

const BEAT_MS = 1_000;
const MOST_TRIES = 5;
const LONGEST_STEP_BACK_MS = 20;

function signOf(path: string, { id }: ProcessIdentity): string {
  return `${path}.lock.${id}`;
}

/** Returns the process that holds the lock, or `undefined` if this process has it now. */
async function putUpUnlessHeld(
  path: string,
  self: ProcessIdentity,
  beatMs: number,
): Promise<ProcessIdentity | undefined> {
  const sign = signOf(path, self);
  let isHeld = false;
  try {
    await writeSign(`${sign}.new`, self);
    await rename(`${sign}.new`, sign);
    const other = await livingHolder(path, self, beatMs);
    isHeld = other === undefined;
    return other;
  } finally {
    if (!isHeld) await Promise.all([sign, `${sign}.new`].map((file) => rm(file, { force: true })));
  }
}

/** On a full disk the lock file is empty: that needs no space, and its holder is recognised by its updates (LOCK3). */
async function writeSign(file: string, self: ProcessIdentity): Promise<void> {
  try {
    await writeFile(file, JSON.stringify(self), { mode: 0o600, flag: "wx" });
  } catch (error) {
    if (!NO_ROOM.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await truncate(file);
  }
}

const NO_ROOM: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);
const NAMELESS: ProcessIdentity = { id: "", pid: 0, startedAt: "", place: "", host: "" };

/** A description of the process that holds the lock of this path, or `undefined` if there is none. Changes nothing. */
export async function lockHolder(path: string): Promise<string | undefined> {
  const self = await thisProcess();
  const other = await livingHolder(path, self, BEAT_MS, async () => {});
  return other === undefined ? undefined : holderName(other, self);
}

/** `onDead` is called for the lock file of a process that has ended. */
async function livingHolder(
  path: string,
  self: ProcessIdentity,
  beatMs: number,
  onDead: (sign: string) => Promise<void> = (sign) => rm(sign, { force: true }),
): Promise<ProcessIdentity | undefined> {
  const own = signOf(path, self);
  const signs = (await readdir(dirname(path)))
    .filter((name) => name.startsWith(`${basename(path)}.lock.`) && !name.endsWith(".new"))
    .map((name) => join(dirname(path), name))
    .filter((sign) => sign !== own);
  for (const sign of signs) {
    const other = await readSign(sign);
    if (other === undefined) continue;
    if ((await isAlive(other, self)) ?? (await isTouched(sign, 3 * beatMs))) return other;
    await onDead(sign);
  }
  return undefined;
}

/** Returns `undefined` if the lock file was removed in the meantime. */
async function readSign(file: string): Promise<ProcessIdentity | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  if (text === "") return NAMELESS;
  try {
    return JSON.parse(text) as ProcessIdentity;
  } catch {
    throw new JournalLockedError(file, `something that is not Slotkeeper (${file} is not a lock file; remove it)`);
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
