import type { CommitNotice } from "@slotkeeper/queue";
import { Client, escapeIdentifier, type Notification } from "pg";
import { parseDsn } from "../connection/parse-dsn.ts";
import { unreference } from "./connections.ts";
import { decodeNotice } from "./decode.ts";

/** How long after its call was answered an echo may take. */
const ECHO_MS = 1_500;
/** A new connection is tested by this many calls in a row, later only at intervals. */
const FIRST_ECHOES = 3;
const FIRST_PAUSE_MS = 100;
/**
 * The longest pause between two attempts to connect, and so how long after the database notifications are back. An
 * attempt has its own timeout.
 */
const LONGEST_PAUSE_MS = 1_000;
const CONNECT_MS = 1_500;
/** The same while connections work but deliver nothing, as through a transaction pooler. Faster attempts would not help. */
const LONGEST_SILENT_PAUSE_MS = 10_000;

type Listener = (notice: CommitNotice) => void;

/**
 * One dedicated connection that listens for commits which wake an instance of this process.
 *
 * NOTIFY1 It connects with the first `watch`. Whenever the connection ends, it connects again, after a pause that grows
 *   up to `LONGEST_PAUSE_MS`.
 * NOTIFY2 It tests itself: some beats of a watched instance, and checks of the store's health, ask for an echo. A
 *   connection that does not deliver it is replaced. This finds half-open connections, and poolers that do not forward
 *   notifications. Not every beat asks for one, because a notification costs every listening connection of the database
 *   a transaction.
 * NOTIFY3 Notifications that are sent while it is not connected are lost. They are hints, and the beat finds what they
 *   missed.
 * NOTIFY4 `isUp` is true only while notifications arrive, as far as the last echo shows. After a silent connection, the
 *   next one counts as up only after its first message.
 */
export class NoticeListener {
  readonly #dsn: string;
  readonly #schema: string;
  /** Listeners by instance, and the instance of each channel. */
  readonly #watched = new Map<string, Set<Listener>>();
  readonly #channels = new Map<string, string>();
  #client: Client | undefined;
  #isOpen = false;
  #isClosed = false;
  #isSuspect = false;
  #losses = 0;
  #echoed = 0;
  #echoedAt = 0;
  #receivedAt = Number.NEGATIVE_INFINITY;
  #pauseMs = FIRST_PAUSE_MS;
  #reconnect: NodeJS.Timeout | undefined;
  readonly #echoes = new Map<string, NodeJS.Timeout>();

  constructor(dsn: string, schema: string) {
    this.#dsn = dsn;
    this.#schema = schema;
  }

  watch(instance: string, listener: Listener): () => void {
    const listeners = this.#watched.get(instance) ?? new Set();
    this.#watched.set(instance, listeners.add(listener));
    if (this.#client === undefined) void this.#connect();
    else if (listeners.size === 1 && this.#isOpen) void this.#listen(this.#client, instance).catch(() => {});
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#watched.delete(instance);
      if (this.#watched.size === 0) this.#drop();
    };
  }

  /** Undefined: no instance is watched. */
  get isUp(): boolean | undefined {
    return this.#watched.size === 0 ? undefined : this.#isOpen && !this.#isSuspect;
  }

  /** Connections that ended or delivered nothing, and failed attempts to connect. */
  get losses(): number {
    return this.#losses;
  }

  /** The instances that are watched. */
  get instances(): readonly string[] {
    return [...this.#watched.keys()];
  }

  /** Whether a call should ask for an echo to the instance, with at least `everyMs` between two echoes. */
  wantsEcho(instance: string, everyMs: number): boolean {
    if (!this.#isListening(instance)) return false;
    return this.#echoed < FIRST_ECHOES || performance.now() - this.#echoedAt >= everyMs;
  }

  /** A call that asked for an echo at `askedAt` has been answered. The echo may have arrived before the answer. */
  expectEcho(instance: string, askedAt: number): void {
    if (!this.#isListening(instance)) return;
    this.#echoed++;
    this.#echoedAt = performance.now();
    if (this.#receivedAt >= askedAt || this.#echoes.has(instance)) return;
    const client = this.#client;
    const timer = setTimeout(() => {
      this.#echoes.delete(instance);
      if (this.#client !== client) return;
      this.#isSuspect = true;
      this.#lost(LONGEST_SILENT_PAUSE_MS);
    }, ECHO_MS);
    this.#echoes.set(instance, timer.unref());
  }

  #isListening(instance: string): boolean {
    return this.#isOpen && this.#watched.has(instance);
  }

  close(): void {
    this.#isClosed = true;
    this.#watched.clear();
    this.#drop();
  }

  async #connect(): Promise<void> {
    const client = new Client({
      application_name: "slotkeeper listen",
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_MS,
      ...parseDsn(this.#dsn),
    });
    this.#client = client;
    const lost = () => {
      if (this.#client === client) this.#lost();
    };
    client.on("error", lost).on("end", lost);
    client.on("notification", (notification) => this.#deliver(notification));
    try {
      await client.connect();
      for (const instance of this.#watched.keys()) await this.#listen(client, instance);
      if (this.#client !== client) return;
      this.#isOpen = true;
      this.#echoed = 0;
      if (!this.#isSuspect) this.#pauseMs = FIRST_PAUSE_MS;
    } catch {
      lost();
    }
  }

  async #listen(client: Client, instance: string): Promise<void> {
    const { rows } = await client.query<{ channel: string }>(
      `SELECT ${escapeIdentifier(this.#schema)}.slotkeeper_channel($1) AS channel`,
      [instance],
    );
    const channel = rows[0]?.channel ?? "";
    this.#channels.set(channel, instance);
    await client.query(`LISTEN ${escapeIdentifier(channel)}`);
  }

  #deliver({ channel, payload = "" }: Notification): void {
    const instance = this.#channels.get(channel);
    if (instance === undefined) return;
    this.#isSuspect = false;
    this.#pauseMs = FIRST_PAUSE_MS;
    this.#receivedAt = performance.now();
    if (payload === "") {
      clearTimeout(this.#echoes.get(instance));
      this.#echoes.delete(instance);
      return;
    }
    const notice = decodeNotice(payload);
    for (const listener of this.#watched.get(instance) ?? []) listener(notice);
  }

  /** Replaces the connection after a pause. */
  #lost(longestPauseMs = LONGEST_PAUSE_MS): void {
    this.#drop();
    this.#losses++;
    if (this.#isClosed || this.#watched.size === 0) return;
    this.#pauseMs = Math.min(this.#pauseMs, longestPauseMs);
    this.#reconnect = setTimeout(() => void this.#connect(), this.#pauseMs).unref();
    this.#pauseMs *= 2;
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    this.#isOpen = false;
    clearTimeout(this.#reconnect);
    for (const timer of this.#echoes.values()) clearTimeout(timer);
    this.#echoes.clear();
    if (client === undefined) return;
    unreference(client);
    // A dead connection would never end by itself.
    client.end().catch(() => {});
  }
}
