import type { News } from "@slotkeeper/queue";
import { Client, escapeIdentifier, type Notification } from "pg";
import { parseDsn } from "../connection/parse-dsn.ts";
import { decodeNews } from "./decode.ts";

/** How long after a beat its echo may take. */
const ECHO_MS = 3_000;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;

type Listener = (news: News) => void;

/**
 * One dedicated connection that listens for commits which wake an instance of this process.
 *
 * N1 It connects with the first `watch`, and connects again by itself whenever the connection ends, with growing pauses.
 * N2 It tests itself: each beat of a watched instance sends an echo, and a connection on which none arrives is replaced. That
 * finds half-open connections, and poolers that do not pass notifications on. N3 What is sent while it is not connected is
 * lost: notifications are hints, and the beat finds what they missed.
 */
export class NewsListener {
  readonly #dsn: string;
  readonly #schema: string;
  /** Listeners by instance, and the instance of each channel. */
  readonly #watched = new Map<string, Set<Listener>>();
  readonly #channels = new Map<string, string>();
  #client: Client | undefined;
  #isOpen = false;
  #isClosed = false;
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

  /** Whether a beat of the instance should ask for an echo. */
  isListening(instance: string): boolean {
    return this.#isOpen && this.#watched.has(instance);
  }

  /** A beat that asked for an echo has been answered. */
  expectEcho(instance: string): void {
    if (!this.isListening(instance) || this.#echoes.has(instance)) return;
    const client = this.#client;
    const timer = setTimeout(() => {
      this.#echoes.delete(instance);
      if (this.#client === client) this.#lost();
    }, ECHO_MS);
    this.#echoes.set(instance, timer.unref());
  }

  close(): void {
    this.#isClosed = true;
    this.#watched.clear();
    this.#drop();
  }

  async #connect(): Promise<void> {
    const config = { application_name: "slotkeeper listen", keepAlive: true, ...parseDsn(this.#dsn) };
    const client = new Client(config);
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
      this.#pauseMs = FIRST_PAUSE_MS;
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
    if (payload === "") {
      clearTimeout(this.#echoes.get(instance));
      this.#echoes.delete(instance);
      return;
    }
    const news = decodeNews(payload);
    for (const listener of this.#watched.get(instance) ?? []) listener(news);
  }

  /** Replaces the connection after a pause. */
  #lost(): void {
    this.#drop();
    if (this.#isClosed || this.#watched.size === 0) return;
    this.#reconnect = setTimeout(() => void this.#connect(), this.#pauseMs).unref();
    this.#pauseMs = Math.min(2 * this.#pauseMs, LONGEST_PAUSE_MS);
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    this.#isOpen = false;
    clearTimeout(this.#reconnect);
    for (const timer of this.#echoes.values()) clearTimeout(timer);
    this.#echoes.clear();
    // A connection that does not answer any more would never end by itself.
    client?.end().catch(() => {});
  }
}
