import type { Beat, BeatReply, Commit, CommitNotice, ReadReply, Tag } from "@slotkeeper/queue";

type Listener = (notice: CommitNotice) => void;
type Read = (host: string, since: Tag | undefined) => Promise<ReadReply>;

/** An offer lapses after 50 ms: it must be found and accepted within that. */
const SHORTEST_MS = 20;
/** For a host where nothing changes. The beat, once a second, would find it later. */
const LONGEST_MS = 250;
const GROWTH = 1.25;
/** Beyond, the hosts that changed longest ago are left to the beat. */
const MOST_HOSTS = 20;

interface Watched {
  tag: Tag | undefined;
  pauseMs: number;
  /** Calls of the engine under way: their replies bring the same. */
  calls: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * In place of a push, which PostgREST does not have: asks for what others committed on the hosts where sessions of this process
 * wait.
 *
 * POLLER1 It asks only while another instance lives: one instance alone knows every commit. POLLER2 A host is asked for every 20 ms while
 * it changes, up to every 250 ms while it does not, and not while the engine itself has a call for it under way. POLLER3 It
 * reports hints: a failed call is left out, and the beat finds what was missed.
 */
export class ChangePoller {
  readonly #read: Read;
  readonly #listeners = new Map<string, Set<Listener>>();
  /** The last one changed last. */
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

  /** The beat says where sessions wait, and its reply who lives. */
  beaten({ instance, hosts }: Beat, { instances }: BeatReply): void {
    if (!this.#listeners.has(instance)) return;
    this.#isFleet = instances.some((other) => other.instance !== instance);
    const waiting = new Map(this.#isFleet ? hosts : []);
    for (const host of Array.from(this.#hosts.keys())) if (!waiting.has(host)) this.#drop(host);
    for (const [host, tag] of waiting) if (!this.#hosts.has(host)) this.#changed(host, tag);
  }

  /** Runs a call of the engine; `tagOf` says which commit its reply shows as the last one. */
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

  /** A session that begins to wait is known to the next beat, and until then by its commit. */
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

/** One commit can be applied as it is. For several the engine reads the host. */
function noticeOf(host: string, base: Tag | undefined, { tag, tail }: ReadReply): CommitNotice {
  const [changes, ...more] = tail.kind === "changes" ? tail.commits : [];
  return changes === undefined || tag === undefined || more.length > 0 ? { host } : { host, base, tag, changes };
}
