import { readFile, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { HostStore } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import { systemWords } from "../../words/system-words.ts";
import { decodeEntries, Restored, snapshotOf } from "./entry.ts";
import { JournalCorruptError, JournalFormatError, JournalPathError } from "./errors.ts";
import { FORMAT, FrameDamage, type Frames, OtherFormat, readFrames } from "./frame.ts";
import { Journal, type JournalEvent, type JournalHealth } from "./journal.ts";
import { JournaledStore } from "./journaled-store.ts";
import { type JournalDisk, NodeDisk, regularFile } from "./node-disk.ts";
import { bootId } from "./process-identity.ts";
import { ProcessLock } from "./process-lock.ts";
import { aheadOf, ResumedClock, type Uptime } from "./resumed-clock.ts";

/** Options of `openJournaledMemoryStore`. */
export interface JournaledStoreOptions {
  /** The file of the journal. It is created if it does not exist. */
  readonly path: string;
  /** The clock of this process. */
  readonly clock: Clock;
  /** How long the machine has been running. Default: the system says it. */
  readonly uptime?: () => Promise<Uptime | undefined>;
  /** How long waiters from before the restart keep their places until their clients poll again, in milliseconds. */
  readonly graceMs?: number;
  /** Creates a key that signs session tokens. It is called once in the life of a journal. */
  readonly newTokenKey: () => string;
  /** Called for events that an operator should see in the log. */
  readonly onEvent?: (event: JournalEvent) => void;
  /** The pause before the disk is tried again, in milliseconds. */
  readonly retryMs?: number;
  /** The smallest size at which the file is compacted, in bytes. */
  readonly compactAfterBytes?: number;
  /** How often the lock and the file are checked, in milliseconds. */
  readonly beatMs?: number;
  /** Replaces the file and its lock, for tests. */
  readonly disk?: JournalDisk;
}

/** A memory store whose state is in a file. */
export interface JournaledMemoryStore {
  readonly store: HostStore;
  /** The clock of the store, which the engine must use. */
  readonly clock: Clock;
  /** Created once and kept. The first key signs. */
  readonly tokenKeys: readonly string[];
  /** Whether slots can be granted, as `/readyz` reports. */
  readonly health: () => JournalHealth;
  /** Writes what is pending, and releases the journal for another process. */
  readonly close: () => Promise<void>;
}

/**
 * Opens the journal at `path`, or creates one, and the store that it describes. Throws `JournalLockedError`,
 * `JournalCorruptError`, `JournalFormatError` or `JournalPathError`, or an error with the system's error as `cause` if
 * the file cannot be read or its lock cannot be created. A full disk is not an error: the store opens, grants nothing,
 * and recovers by itself.
 */
export async function openJournaledMemoryStore(options: JournaledStoreOptions): Promise<JournaledMemoryStore> {
  try {
    return await open(options);
  } catch (error) {
    // The error of the system does not name the file.
    if (!(error instanceof Error) || !("syscall" in error)) throw error;
    throw new Error(`The journal ${options.path} cannot be opened: ${systemWords(error)}`, { cause: error });
  }
}

async function open(options: JournaledStoreOptions): Promise<JournaledMemoryStore> {
  const path = await trueName(options.path);
  let guarded: Journal | undefined;
  let isLost = false;
  const onLost = () => {
    isLost = true;
    options.onEvent?.({ type: "lock-lost" });
    void guarded?.abandon(LOST);
  };
  const onBeat = () => void guarded?.verify();
  // Before the lock, because next to a device there is no place for a lock file.
  if (options.disk === undefined) await regularFile(path);
  const lock =
    options.disk === undefined ? await ProcessLock.take({ path, beatMs: options.beatMs, onLost, onBeat }) : undefined;
  try {
    const disk = options.disk ?? new NodeDisk(path);
    const content = framesOf(path, await disk.read());
    const { store, journal, tokenKeys, clock } = await replay(options, disk, content);
    guarded = journal;
    if (isLost) await journal.abandon(LOST);
    const close = async () => {
      await journal.close();
      await lock?.release();
    };
    return { store, clock, tokenKeys, health: () => journal.health, close };
  } catch (error) {
    await lock?.release();
    throw error;
  }
}

const LOST = "another process has taken it over";

async function replay(options: JournaledStoreOptions, disk: JournalDisk, { frames, tornBytes }: Frames) {
  const { newTokenKey, graceMs = 0, retryMs, compactAfterBytes, onEvent } = options;
  const restored = new Restored();
  for (const { body } of frames) for (const entry of decodeEntries(body)) restored.apply(entry);
  const { fenceFloor, entries, keys, start } = restored;
  const uptime = await (options.uptime ?? readUptime)();
  // The time of a frame has no fractions.
  const lastAt = frames.reduce((last, { at }) => Math.max(last, at), restored.lastAt);
  const clock = new ResumedClock(options.clock, aheadOf({ lastAt, start }, uptime, options.clock.now()));
  const started = uptime && { boot: uptime.boot, at: clock.now() - uptime.ms };
  const tokenKeys = keys ?? [newTokenKey()];
  const journal: Journal = new Journal({
    disk,
    clock,
    snapshot: () => snapshotOf(tokenKeys, started, store.memory),
    retryMs: retryMs ?? 1000,
    compactAfterBytes: compactAfterBytes ?? 4 * 1024 * 1024,
    onEvent: onEvent ?? (() => {}),
  });
  const hosts = restored.hosts(clock.now());
  const store: JournaledStore = new JournaledStore(journal, { clock, hosts, fenceFloor, graceMs });
  onEvent?.({ type: "opened", entries, tornBytes, aheadMs: clock.aheadMs });
  await journal.open();
  return { store, journal, tokenKeys, clock };
}

/** Throws a `JournalCorruptError`, a `JournalFormatError` or a `JournalPathError`. */
export function framesOf(path: string, content: Uint8Array | undefined): Frames {
  try {
    return readFrames(content ?? new Uint8Array());
  } catch (error) {
    throw error instanceof FrameDamage ? refusalOf(path, error) : error;
  }
}

function refusalOf(path: string, damage: FrameDamage): Error {
  if (!(damage instanceof OtherFormat)) return new JournalCorruptError(path, damage.offset, damage.message);
  if (damage.format !== undefined) return new JournalFormatError(path, damage.format, FORMAT);
  return new JournalPathError(path, "the file is not a slotkeeper journal. Nothing was changed.");
}

/** Two names of the same file have one lock. */
export async function trueName(path: string): Promise<string> {
  return realpath(path).catch(async () => join(await realpath(dirname(path)), basename(path)));
}

/** Undefined where the system does not say. */
async function readUptime(): Promise<Uptime | undefined> {
  const boot = await bootId();
  const ms = Number.parseFloat(await readFile("/proc/uptime", "latin1").catch(() => "")) * 1000;
  return boot === "" || Number.isNaN(ms) ? undefined : { boot, ms };
}
