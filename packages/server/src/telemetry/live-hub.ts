import type { LiveState } from "@slotkeeper/protocol";
import type { Clock } from "slotkeeper";

/** How often changes are sent to listeners: once a second looks live, and costs the same at any rate of changes. */
const TICK_MS = 1_000;
/**
 * After this number of ticks a message is sent even if nothing changed, to update ages and to find dead connections.
 */
const TICKS_PER_BEAT = 5;
const HOSTS_PER_TICK = 100;
/** The largest number of hosts that wait to be sent; others are only counted. */
const MOST_STIRRED = 5_000;
const MOST_LISTENERS = 256;
/** The largest amount of unsent data of a listener: some messages. Beyond it, the listener does not read. */
const MOST_UNREAD_BYTES = 256 * 1024;

/** Where events are written. `writableLength` is what the reader has not taken yet, in bytes. */
export interface EventStream {
  readonly writableLength: number;
  once(event: "close", listener: () => void): unknown;
  write(message: Uint8Array): unknown;
  end(): unknown;
  destroy(): unknown;
}

/** What a `LiveHub` needs. */
export interface LiveHubInit {
  readonly clock: Clock;
  /** The current state, with the rows of these hosts. */
  readonly frame: (hosts: readonly string[], more: number) => Promise<LiveState>;
  readonly onDropped: () => void;
  readonly onError: (error: unknown) => void;
}

/**
 * The listeners of the events. Changes are collected and sent together.
 *
 * HUB1  Without a listener, a change costs nothing.
 * HUB2  A change costs an entry in a set, for any number of listeners. A tick costs one message and one write per
 *     listener.
 * HUB3  Nothing is buffered for a listener that does not read: beyond `MOST_UNREAD_BYTES` it is disconnected.
 * HUB4  A changed host is sent within one tick for each `HOSTS_PER_TICK` hosts that wait before it, with its state at
 *     that time. States in between are not sent.
 *
 * Nothing is promised across a reconnection: the listener can ask for the state.
 */
export class LiveHub {
  readonly #init: LiveHubInit;
  readonly #listeners = new Set<EventStream>();
  #stirred = new Set<string>();
  #uncounted = 0;
  #ticks = 0;
  #timer: unknown;
  #isBusy = false;
  #isClosed = false;

  constructor(init: LiveHubInit) {
    this.#init = init;
  }

  get size(): number {
    return this.#listeners.size;
  }

  get isFull(): boolean {
    return this.#isClosed || this.#listeners.size >= MOST_LISTENERS;
  }

  /** Marks a host as changed. */
  stir(host: string): void {
    if (this.#listeners.size === 0) return;
    if (this.#stirred.size < MOST_STIRRED) this.#stirred.add(host);
    else if (!this.#stirred.has(host)) this.#uncounted++;
  }

  /** Takes over an answer whose head has been written. */
  add(stream: EventStream, hello: object): void {
    this.#listeners.add(stream);
    stream.once("close", () => this.#remove(stream));
    this.#write(stream, utf8.encode(`retry: 2000\n${eventText("hello", hello)}`));
    // The first message is sent at once, so that a new listener does not see an empty page.
    this.#ticks = 0;
    this.#arm();
  }

  /** Sends to all listeners at once; for rare events. */
  say(event: string, data: object): void {
    if (this.#listeners.size > 0) this.#broadcast(event, data);
  }

  close(): void {
    this.#isClosed = true;
    this.#disarm();
    for (const stream of this.#listeners) stream.end();
    this.#listeners.clear();
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#isClosed || this.#listeners.size === 0) return;
    this.#timer = this.#init.clock.setTimer(() => {
      this.#timer = undefined;
      this.#tick();
      this.#arm();
    }, TICK_MS);
  }

  #disarm(): void {
    if (this.#timer !== undefined) this.#init.clock.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    const isBeat = this.#ticks % TICKS_PER_BEAT === 0;
    this.#ticks++;
    if (this.#isBusy || (!isBeat && this.#stirred.size === 0 && this.#uncounted === 0)) return;
    this.#isBusy = true;
    this.#sendChanges()
      .catch(this.#init.onError)
      .finally(() => {
        this.#isBusy = false;
      });
  }

  async #sendChanges(): Promise<void> {
    const hosts: string[] = [];
    for (const host of this.#stirred) {
      if (hosts.length >= HOSTS_PER_TICK) break;
      this.#stirred.delete(host);
      hosts.push(host);
    }
    const more = this.#stirred.size + this.#uncounted;
    this.#uncounted = 0;
    this.#broadcast("state", await this.#init.frame(hosts, more));
  }

  #broadcast(event: string, data: object): void {
    const message = utf8.encode(eventText(event, data));
    for (const stream of this.#listeners) this.#write(stream, message);
  }

  #write(stream: EventStream, message: Uint8Array): void {
    if (stream.writableLength <= MOST_UNREAD_BYTES) {
      stream.write(message);
      return;
    }
    this.#remove(stream);
    this.#init.onDropped();
    stream.destroy();
  }

  #remove(stream: EventStream): void {
    this.#listeners.delete(stream);
    if (this.#listeners.size > 0) return;
    this.#disarm();
    this.#stirred = new Set();
    this.#uncounted = 0;
  }
}

const utf8 = new TextEncoder();

function eventText(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
