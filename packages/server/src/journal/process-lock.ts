import { link, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { JournalLockedError } from "./errors.ts";
import { isAlive, type ProcessIdentity, thisProcess } from "./process-identity.ts";

export interface ProcessLockOptions {
  /** What is guarded; the lock is a file beside it. */
  readonly path: string;
  readonly beatMs?: number;
  /** Called once, when another process has the lock after all. */
  readonly onLost: () => void;
}

/**
 * One process at a time, without a lock of the operating system (Node has none to offer).
 *
 * K1 the lock is a file that appears whole (a link) or not at all, and names its process. K2 a crash leaves it behind, but
 * not in the way: a process that is gone, or whose number was given to another, holds nothing. K3 where the number cannot
 * be looked up (another container, another machine) the holder is alive while it touches the file: it is watched for three
 * beats. K4 a holder looks at every beat whether the lock is its own still.
 * Not promised: a holder elsewhere that stands still for three beats is taken for dead, and may answer until its next beat.
 */
export class ProcessLock {
  readonly #file: string;
  readonly #self: ProcessIdentity;
  readonly #onLost: () => void;
  readonly #timer: NodeJS.Timeout;

  private constructor(file: string, self: ProcessIdentity, beatMs: number, onLost: () => void) {
    this.#file = file;
    this.#self = self;
    this.#onLost = onLost;
    this.#timer = setInterval(() => void this.#beat(), beatMs);
    this.#timer.unref();
  }

  /** Throws `JournalLockedError`. */
  static async take({ path, beatMs = 1000, onLost }: ProcessLockOptions): Promise<ProcessLock> {
    const file = `${path}.lock`;
    const self = await thisProcess();
    const own = `${file}.${self.id}`;
    try {
      await writeFile(own, JSON.stringify(self), { mode: 0o600 });
      while (!(await isLinked(own, file))) await clearStale(path, file, self, beatMs);
    } finally {
      await rm(own, { force: true });
    }
    return new ProcessLock(file, self, beatMs, onLost);
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    if ((await readHolder(this.#file))?.id === this.#self.id) await rm(this.#file, { force: true });
  }

  async #beat(): Promise<void> {
    const holder = await readHolder(this.#file).catch(() => this.#self);
    if (holder?.id === this.#self.id) {
      const now = new Date();
      await utimes(this.#file, now, now).catch(() => {});
      return;
    }
    clearInterval(this.#timer);
    this.#onLost();
  }
}

async function isLinked(own: string, file: string): Promise<boolean> {
  try {
    await link(own, file);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Returns when the lock may be tried for again. */
async function clearStale(path: string, file: string, self: ProcessIdentity, beatMs: number): Promise<void> {
  const holder = await readHolder(file);
  if (holder === undefined) return;
  if ((await isAlive(holder, self)) ?? (await isTouched(file, 3 * beatMs))) {
    const where = holder.host === self.host ? "" : ` on ${holder.host}`;
    throw new JournalLockedError(path, `process ${holder.pid}${where}`);
  }
  await takeAway(file, holder, self);
}

/** Of several that found it stale one moves it; who moved a fresh one instead puts it back. */
async function takeAway(file: string, stale: ProcessIdentity, self: ProcessIdentity): Promise<void> {
  const aside = `${file}.${self.id}.stale`;
  try {
    await rename(file, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if ((await readHolder(aside))?.id !== stale.id) await isLinked(aside, file);
  await rm(aside, { force: true });
}

/** Undefined: there is none. One that cannot be read as a lock is not ours to judge. */
async function readHolder(file: string): Promise<ProcessIdentity | undefined> {
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
