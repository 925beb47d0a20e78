import type { Clock } from "slotkeeper";
import { encodeEntry, type JournalEntry } from "./entry.ts";
import { JournalReplacedError, StoreUnwritableError } from "./errors.ts";
import { encodeFirstLine, encodeFrame } from "./frame.ts";
import type { AppendFile, JournalDisk } from "./node-disk.ts";

export interface JournalInit {
  readonly disk: JournalDisk;
  readonly clock: Clock;
  /** The whole current state. It replaces all earlier entries. */
  readonly snapshot: () => Iterable<JournalEntry>;
  readonly retryMs: number;
  /** The file is compacted when it has at least this size and is four times as large as the last snapshot. */
  readonly compactAfterBytes: number;
  readonly onEvent: (event: JournalEvent) => void;
}

/** What happens to a journal, for the log. */
export type JournalEvent =
  | { readonly type: "opened"; readonly entries: number; readonly tornBytes: number; readonly aheadMs: number }
  | { readonly type: "compacted"; readonly fromBytes: number; readonly toBytes: number }
  /** There was no room for the successor. The file continues to grow. */
  | { readonly type: "compaction-failed"; readonly error: unknown }
  | { readonly type: "unwritable"; readonly error: unknown }
  | { readonly type: "writable" }
  /** Another process took the lock: this one must stop. */
  | { readonly type: "lock-lost" };

/** Whether the journal can be written, and since when not. */
export type JournalHealth =
  | { readonly isWritable: true }
  | { readonly isWritable: false; readonly reason: string; readonly since: number };

type State =
  | { readonly kind: "writable"; readonly file: AppendFile }
  | { readonly kind: "unwritable"; readonly error: unknown; readonly since: number }
  | { readonly kind: "closed"; readonly reason: string; readonly since: number };

/** The entries of one frame, and the callers that wait for them. */
class Batch {
  readonly lines: string[] = [];
  readonly kept: Promise<void>;
  finish!: (failure: StoreUnwritableError | undefined) => void;

  constructor() {
    this.kept = new Promise((resolve, reject) => {
      this.finish = (failure) => (failure === undefined ? resolve() : reject(failure));
    });
    // Perhaps no caller waits. A failure also shows in the health of the journal.
    this.kept.catch(() => {});
  }
}

/** How long entries that no caller waits for may be collected, in milliseconds. */
const DEFER_MS = 50;

/**
 * A log of entries with group commit: while one write and sync runs, entries are collected for the next one.
 *
 * | state      | event                            | next                                                            |
 * |------------|----------------------------------|-----------------------------------------------------------------|
 * | writable   | the file has grown               | writable: a snapshot replaces it                                |
 * | writable   | no room for the snapshot         | writable: the old file continues                                |
 * | writable   | a write, sync or rename failed   | unwritable: nothing more is written to that file                |
 * | unwritable | `retryMs` passed, snapshot fails | unwritable                                                      |
 * | unwritable | `retryMs` passed, snapshot works | writable, with everything that happened, answered or not        |
 * | any        | `close`, lock lost, file replaced| closed                                                          |
 *
 * JOURNAL1  `kept()` resolves only when every entry appended before it is on the disk.
 * JOURNAL2  Entries reach the disk in the order in which they were appended. After a crash, the file has a prefix of
 *     them.
 * JOURNAL3  While the journal is not writable, `admit` throws, so that nothing is decided that could not be stored.
 * JOURNAL4  A file that failed is never written to again. After a failed sync the system may treat the pages as clean,
 *     and a second sync would succeed without writing them.
 * JOURNAL5  An entry is on the disk at most `DEFER_MS` and two syncs after it was appended, whether or not a caller
 *     waits for it.
 *
 * Cost: one write and one sync for all entries that were collected.
 */
export class Journal {
  readonly #init: JournalInit;
  #state: State;
  #next: Batch | undefined;
  #current: Batch | undefined;
  #number = 0;
  #bytes = 0;
  #compactAt = 0;
  #retryTimer: unknown;
  #deferTimer: unknown;
  #isRunning = false;
  #running: Promise<void> = Promise.resolve();

  constructor(init: JournalInit) {
    this.#init = init;
    this.#state = { kind: "unwritable", error: NOT_OPENED, since: init.clock.now() };
  }

  get health(): JournalHealth {
    const state = this.#state;
    if (state.kind === "writable") return { isWritable: true };
    const reason = state.kind === "closed" ? state.reason : messageOf(state.error);
    return { isWritable: false, reason, since: state.since };
  }

  /**
   * Writes the whole file again, as at every start. This drops a torn end, and leaves the old file to a process that
   * lost the lock.
   */
  async open(): Promise<void> {
    try {
      await this.#replace();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Throws `StoreUnwritableError` if nothing may be decided now. */
  admit(): void {
    const { health } = this;
    if (!health.isWritable) throw unwritable(health.reason);
  }

  /** The entry is written with the next sync: `kept` starts one at once, and JOURNAL5 guarantees one. */
  append(entry: JournalEntry): void {
    this.#next ??= new Batch();
    this.#next.lines.push(encodeEntry(entry));
    if (!this.#isRunning) this.#deferTimer ??= this.#init.clock.setTimer(() => this.#start(), DEFER_MS);
  }

  /** Returns `undefined` if everything is already on the disk. */
  kept(): Promise<void> | undefined {
    if (this.#next !== undefined) this.#start();
    return (this.#next ?? this.#current)?.kept;
  }

  /**
   * Compares the file with what was written, so that a deleted file is written again before a crash could lose its
   * contents.
   */
  async verify(): Promise<void> {
    const state = this.#state;
    if (state.kind !== "writable" || this.#current !== undefined) return;
    await state.file.check().catch((error: unknown) => {
      if (this.#state === state) this.#fail(error);
    });
  }

  /** Writes everything that was appended, then stops. */
  async close(): Promise<void> {
    await this.kept()?.catch(() => {});
    await this.#running;
    await this.abandon("it is closed");
  }

  /** Stops at once. Entries that are not on the disk yet are not answered either. */
  async abandon(reason: string): Promise<void> {
    const before = this.#state;
    if (before.kind === "closed") return;
    if (this.#next !== undefined) this.#start();
    if (before.kind === "unwritable") this.#init.clock.clearTimer(this.#retryTimer);
    this.#state = { kind: "closed", reason, since: this.#init.clock.now() };
    if (before.kind === "writable") await before.file.close().catch(() => {});
  }

  #start(): void {
    if (this.#deferTimer !== undefined) this.#init.clock.clearTimer(this.#deferTimer);
    this.#deferTimer = undefined;
    if (!this.#isRunning) this.#running = this.#run();
  }

  /** Starts after the promise reactions of the current turn, so that everything they append is written together. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    await Promise.resolve();
    for (let batch = this.#next; batch !== undefined; batch = this.#next) {
      this.#next = undefined;
      this.#current = batch;
      batch.finish(await this.#keep(batch));
    }
    this.#current = undefined;
    this.#isRunning = false;
  }

  /** Returns `undefined` if the batch is on the disk, otherwise the error. */
  async #keep(batch: Batch): Promise<StoreUnwritableError | undefined> {
    const state = this.#state;
    if (state.kind === "writable") {
      await this.#write(batch, state.file).catch((error: unknown) => this.#fail(error));
    }
    const { health } = this;
    return health.isWritable ? undefined : unwritable(health.reason);
  }

  /** A snapshot contains the batch, because entries are appended in the same turn in which they take effect. */
  async #write(batch: Batch, file: AppendFile): Promise<void> {
    if (this.#bytes >= this.#compactAt && (await this.#compact(file))) return;
    const frame = encodeFrame({ number: ++this.#number, at: this.#init.clock.now(), body: batch.lines.join("") });
    await file.append(frame);
    this.#bytes += frame.length;
  }

  async #compact(before: AppendFile): Promise<boolean> {
    const fromBytes = this.#bytes;
    const isDone = await this.#replace((error) => {
      this.#compactAt *= 2;
      this.#init.onEvent({ type: "compaction-failed", error });
    });
    if (!isDone) return false;
    await before.close().catch(() => {});
    this.#init.onEvent({ type: "compacted", fromBytes, toBytes: this.#bytes });
    return true;
  }

  /** `onNoRoom` is called if the successor could not be written and the file is unchanged. */
  async #replace(onNoRoom?: (error: unknown) => void): Promise<boolean> {
    const { disk, clock, snapshot, compactAfterBytes } = this.#init;
    const body = Array.from(snapshot(), encodeEntry).join("");
    const content = Buffer.concat([encodeFirstLine(), encodeFrame({ number: 1, at: clock.now(), body })]);
    const prepared = await disk.prepare(content).catch((error: unknown) => {
      if (onNoRoom === undefined) throw error;
      onNoRoom(error);
    });
    if (prepared === undefined) return false;
    const file = await prepared.commit();
    if (this.#state.kind === "closed") {
      await file.close();
      return false;
    }
    this.#state = { kind: "writable", file };
    this.#number = 1;
    this.#bytes = content.length;
    this.#compactAt = Math.max(compactAfterBytes, 4 * content.length);
    return true;
  }

  #fail(cause: unknown): void {
    const before = this.#state;
    if (before.kind === "closed") return;
    const { clock, retryMs, onEvent } = this.#init;
    if (cause instanceof JournalReplacedError) {
      // Writing the file again would undo commits that the other process has answered.
      onEvent({ type: "lock-lost" });
      void this.abandon(cause.message);
      return;
    }
    if (before.kind === "writable") void before.file.close().catch(() => {});
    const since = before.kind === "unwritable" ? before.since : clock.now();
    this.#state = { kind: "unwritable", error: cause, since };
    // Logged once, not every second.
    if (before.kind === "writable" || before.error === NOT_OPENED) onEvent({ type: "unwritable", error: cause });
    this.#retryTimer = clock.setTimer(() => {
      this.#running = this.#retry();
    }, retryMs);
    (this.#retryTimer as { unref?(): void } | undefined)?.unref?.();
  }

  async #retry(): Promise<void> {
    try {
      if (await this.#replace()) this.#init.onEvent({ type: "writable" });
    } catch (error) {
      this.#fail(error);
    }
  }
}

const NOT_OPENED = new Error("it was not opened");

function unwritable(reason: string): StoreUnwritableError {
  return new StoreUnwritableError(`Nothing can be granted: the journal cannot be written (${reason})`);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
