import { readdir, readFile, rename, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { JournalLockedError } from "./errors.ts";
import { isAlive, type ProcessIdentity, thisProcess } from "./process-identity.ts";

/** Options of a `ProcessLock`. */
export interface ProcessLockOptions {
  /** What is guarded; the lock is a file beside it. */
  readonly path: string;
  /** How often the holder shows that it is alive. */
  readonly beatMs?: number | undefined;
  /** Called once, when another process took this one for dead. */
  readonly onLost: () => void;
  /** Called at every beat while it is held. */
  readonly onBeat?: () => void;
}

/**
 * One process at a time, without a lock of the operating system (Node has none to offer). Each puts up a sign of its own,
 * then looks for others; with another living one there, it takes its own down.
 *
 * LOCK1 two never hold it: the one that put its sign up later sees the other's. Signs appear whole (a rename) and have names
 * that are never used again, so taking down a dead one's cannot hit a living one's. LOCK2 a crash leaves a sign behind, but
 * not in the way: a process that is gone (a zombie, too), or whose number was given to another, holds nothing. LOCK3 where the number cannot
 * be looked up (another container, another machine) the holder is alive while it touches its sign: it is watched for three
 * beats. LOCK4 a holder looks at every beat whether its sign still stands. One that was removed is put
 * up again, as at the start: unless another process has put up its own, which then has it.
 * Not promised: two that start at once may both step back; they try again some times. A holder elsewhere that stands still
 * for three beats is taken for dead, and may answer until its next beat.
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
    // Where the folder cannot be read or written it is tried again at the next beat.
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

/** The process that holds the lock; undefined: this one. */
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

/** On a full disk the sign is empty: that needs no room, and its holder is known by touching it (LOCK3). */
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

/** A description of the process that holds the lock of this path; undefined: none. Changes nothing. */
export async function lockHolder(path: string, beatMs = BEAT_MS): Promise<string | undefined> {
  const self = await thisProcess();
  const other = await livingHolder(path, self, beatMs, async () => {});
  return other === undefined ? undefined : holderName(other, self);
}

/** `onDead`: called for the lock file of a process that has ended. */
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

/** Undefined: it was taken down meanwhile. */
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
