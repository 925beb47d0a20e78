import type { Beat, BeatReply, Commit, CommitNotice, ReadReply, Tag } from "@slotkeeper/queue";

type Listener = (notice: CommitNotice) => void;
type Read = (host: string, since: Tag | undefined) => Promise<ReadReply>;

/** An offer lapses after 50 ms. The poller must find it and the instance accept it within that time. */
const SHORTEST_MS = 20;
/** For a host without changes. Without polling, the beat would find a change after up to a second. */
const LONGEST_MS = 250;
const GROWTH = 1.25;
/** If more hosts have waiters, those that changed longest ago rely on the beat. */
const MOST_HOSTS = 20;

interface Watched {
  tag: Tag | undefined;
  pauseMs: number;
  /** Calls of the engine in progress. Their replies contain the same changes. */
  calls: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * Replaces notifications, which PostgREST does not offer: polls for commits of other instances on the hosts where
 * sessions of this process wait.
 *
 * POLLER1 It polls only while another instance is alive: a single instance knows every commit.
 * POLLER2 It reads a host every 20 ms while the host changes, and less and less often, down to every 250 ms, while it
 *   does not. It does not read while the engine itself has a call for the host in progress.
 * POLLER3 Its reports are hints: a failed read is skipped, and the beat finds what was missed.
 */
export class ChangePoller {
  readonly #read: Read;
  readonly #listeners = new Map<string, Set<Listener>>();
  /** In the order of their last change; the latest is at the end. */
  readonly #hosts = new Map<string, Watched>();
  #isFleet = false;

  constructor(read: Read) {
    this.#read = read;
  }

  watch(instance: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(instance) ?? new Set();
    this.#listeners.set(instance, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      this.#listeners.delete(instance);
      if (this.#listeners.size === 0) this.close();
    };
  }

  close(): void {
    for (const host of Array.from(this.#hosts.keys())) this.#drop(host);
  }

  /** The beat contains the hosts where sessions wait, and its reply the live instances. */
  beaten({ instance, hosts }: Beat, { instances }: BeatReply): void {
    if (!this.#listeners.has(instance)) return;
    this.#isFleet = instances.some((other) => other.instance !== instance);
    const waiting = new Map(this.#isFleet ? hosts : []);
    for (const host of Array.from(this.#hosts.keys())) if (!waiting.has(host)) this.#drop(host);
    for (const [host, tag] of waiting) if (!this.#hosts.has(host)) this.#changed(host, tag);
  }

  /** Runs a call of the engine. `tagOf` returns the tag of the last commit from the reply. */
  async around<T>(host: string, call: () => Promise<T>, tagOf: (reply: T) => Tag | undefined): Promise<T> {
    const watched = this.#hosts.get(host);
    if (watched === undefined) return call();
    watched.calls++;
    try {
      const reply = await call();
      const tag = tagOf(reply);
      if (tag === undefined) this.#drop(host);
      else if (tag !== watched.tag && this.#hosts.get(host) === watched) this.#changed(host, tag);
      return reply;
    } finally {
      watched.calls--;
    }
  }

  /** The beat reports a waiting session only later, so the first commit with its waiter starts the polling. */
  committed({ host, instance, tag, changes }: Commit): void {
    if (!this.#isFleet || this.#hosts.has(host) || !this.#listeners.has(instance)) return;
    if (changes.puts.some((record) => record.kind === "waiter" && record.instance === instance))
      this.#changed(host, tag);
  }

  #changed(host: string, tag: Tag | undefined): void {
    const watched = this.#hosts.get(host) ?? { tag, pauseMs: SHORTEST_MS, calls: 0, timer: undefined };
    this.#hosts.delete(host);
    this.#hosts.set(host, watched);
    watched.tag = tag;
    watched.pauseMs = SHORTEST_MS;
    this.#schedule(host, watched);
    const [oldest] = this.#hosts.keys();
    if (this.#hosts.size > MOST_HOSTS && oldest !== undefined) this.#drop(oldest);
  }

  #schedule(host: string, watched: Watched): void {
    clearTimeout(watched.timer);
    watched.timer = setTimeout(() => void this.#ask(host, watched), watched.pauseMs).unref();
  }

  #drop(host: string): void {
    clearTimeout(this.#hosts.get(host)?.timer);
    this.#hosts.delete(host);
  }

  async #ask(host: string, watched: Watched): Promise<void> {
    const { tag } = watched;
    const reply = watched.calls > 0 ? undefined : await this.#read(host, tag).catch(() => undefined);
    if (this.#hosts.get(host) !== watched) return;
    const isChanged = reply !== undefined && reply.tag !== tag && watched.tag === tag && watched.calls === 0;
    if (isChanged) {
      this.#changed(host, reply.tag);
      this.#report(noticeOf(host, tag, reply));
    } else {
      watched.pauseMs = Math.min(LONGEST_MS, watched.pauseMs * GROWTH);
      this.#schedule(host, watched);
    }
  }

  #report(notice: CommitNotice): void {
    for (const listeners of this.#listeners.values()) for (const listener of listeners) listener(notice);
  }
}

function noticeOf(host: string, base: Tag | undefined, { tag, tail }: ReadReply): CommitNotice {
  return tail.kind === "book" || tag === undefined ? { host } : { host, base, tag, changes: tail.changes };
}
