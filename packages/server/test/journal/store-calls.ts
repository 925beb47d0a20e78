import {
  type HostPolicy,
  type HostSnapshot,
  type HostStore,
  type LiveLimits,
  resolveHost,
  resolveOptions,
  snapshotOf,
} from "@slotkeeper/queue";
import { Book, decide, type Input, type Outcome } from "@slotkeeper/queue/internals";

const HOST = "host.example";

/** The limits that the processes of the crash test check. */
export const LIMITS = { maxSlotPerHost: 8, maxSlotPerIp: 2, maxWaitersPerHost: 0, zombieTimeoutSeconds: 600 };

export function policyOf(config: Parameters<typeof resolveOptions>[0] = {}): HostPolicy {
  return resolveHost(resolveOptions(config), HOST).policy;
}

export type Standing =
  | { readonly status: "HELD"; readonly slot: Slot }
  | { readonly status: "ENDED"; readonly end: string }
  | { readonly status: "WAIT" };

export interface Slot {
  readonly slotToken: string;
  readonly fence: number;
  readonly leaseMs: number;
}

const INSTANCE = "test";
const SCHEDULER = resolveOptions().scheduler;
let made = 0;
/** Different from those of other processes. */
const newSecret = () => `${process.pid}-${made++}`;

/**
 * A minimal engine: every call reads the host, decides, and commits until its commit is accepted. Calls run one after
 * the other.
 */
export class Calls {
  readonly #store: HostStore;
  readonly #policy: HostPolicy;
  readonly #host: string;
  readonly #isSemaphore: boolean;
  #last: Promise<unknown> = Promise.resolve();

  constructor(store: HostStore, policy: HostPolicy, host = HOST) {
    this.#store = store;
    this.#policy = policy;
    this.#host = host;
    this.#isSemaphore = host.startsWith("sem:");
  }

  /** Asks for a slot. A session that gets none leaves nothing in the store. */
  async ask(session: string, limit?: number): Promise<Standing> {
    const { book } = await this.#decide(session, (now) => ({ kind: "arrive", limit, ...joining(session, now) }));
    const standing = standingOf(book, session);
    if (standing.status === "WAIT") await this.#decide(undefined, () => ({ kind: "dead", instance: INSTANCE }));
    return standing;
  }

  /** Undefined: not granted. */
  async grant(session: string): Promise<Slot | undefined> {
    const standing = await this.ask(session);
    return standing.status === "HELD" ? standing.slot : undefined;
  }

  /** Waits for a slot that is not free. */
  async wait(session: string): Promise<void> {
    await this.#decide(undefined, (now) => ({ kind: "arrive", limit: undefined, ...joining(session, now) }));
  }

  async withdraw(session: string): Promise<void> {
    await this.#decide(undefined, (now, book) => {
      const { bucket, arrivedAt, deadlineAt } = joining(session, now);
      const keepUntil = book.leaseOf(session)?.keepUntil ?? deadlineAt;
      return { kind: "end", session, bucket, arrivedAt, end: "canceled", keepUntil, at: now };
    });
  }

  /** The session's client never fetched its slot. */
  async undo(session: string): Promise<Outcome> {
    const { outcome } = await this.#decide(undefined, (now, book) => ({
      kind: "return",
      fence: book.leaseOf(session)?.fence ?? 0,
      awayAt: now - 5_000,
      ...joining(session, now),
    }));
    await this.#decide(undefined, () => ({ kind: "dead", instance: INSTANCE }));
    return outcome;
  }

  /** Undefined: the release has no effect. */
  async release(slotToken: string, status?: number): Promise<{ endsInMs: number } | undefined> {
    const input: Input = { kind: "release", slotToken, hitAt: undefined, status };
    const { outcome, book } = await this.#decide(undefined, () => input);
    return outcome.kind === "released" ? { endsInMs: outcome.endsAt - book.now } : undefined;
  }

  /** Undefined: the lease has ended. */
  async renew(slotToken: string): Promise<{ leaseMs: number } | undefined> {
    const { outcome, book } = await this.#decide(undefined, () => ({ kind: "renew", slotToken }));
    return outcome.kind === "renewed" ? { leaseMs: outcome.endsAt - book.now } : undefined;
  }

  async report(status: number): Promise<void> {
    await this.#decide(undefined, () => ({ kind: "report", status }));
  }

  async limits(limits: LiveLimits): Promise<void> {
    await this.#decide(undefined, () => ({ kind: "limits", limits }));
  }

  async unspace(): Promise<void> {
    await this.#decide(undefined, () => ({ kind: "unspace" }));
  }

  async revoke(fence: number): Promise<void> {
    await this.#decide(undefined, () => ({ kind: "revoke", fence }));
  }

  /** Undefined: the store does not know the host. */
  async snapshot(): Promise<HostSnapshot | undefined> {
    const image = (await this.#store.peek([this.#host])).get(this.#host);
    const { now } = await this.#store.beat({ instance: INSTANCE, ttlMs: 0, about: {}, hosts: [] });
    return image === undefined ? undefined : snapshotOf(this.#host, image, Math.max(now, image.head.now));
  }

  #decide(
    polled: string | undefined,
    inputAt: (now: number, book: Book) => Input,
  ): Promise<{ outcome: Outcome; book: Book }> {
    const decided = this.#last.then(() => this.#commit(polled, inputAt));
    this.#last = decided.catch(() => {});
    return decided;
  }

  async #commit(
    polled: string | undefined,
    inputAt: (now: number, book: Book) => Input,
  ): Promise<{ outcome: Outcome; book: Book }> {
    for (;;) {
      const book = await this.#read();
      const { outcomes } = decide(book, [inputAt(book.now, book)], this.#context(book.now, polled));
      const outcome = outcomes[0] as Outcome;
      if (!book.isChanged) return { outcome, book };
      const base = book.tag;
      const tag = `${Number.parseInt(base ?? "0", 10) + 1}.${newSecret()}`;
      const commit = { host: this.#host, instance: INSTANCE, base, tag, now: book.now, changes: book.changes() };
      const reply = await this.#store.commit({ ...commit, hasOthers: false, wake: [], conflicts: 0 });
      if (reply.isOk) return { outcome, book };
    }
  }

  async #read(): Promise<Book> {
    const { now, tag, tail, fenceFloor } = await this.#store.read(this.#host, undefined);
    if (tail.kind === "changes") throw new Error("Expected a whole book");
    const book = tail.book === undefined ? new Book(this.#host, now, fenceFloor) : Book.of(this.#host, tag, tail.book);
    book.moveTo(now);
    return book;
  }

  #context(now: number, polled: string | undefined): Parameters<typeof decide>[2] {
    return {
      now,
      instance: INSTANCE,
      limits: { policy: this.#policy, loadedAt: 0, hostname: undefined },
      isSemaphore: this.#isSemaphore,
      collectMs: 1_000,
      // A cancellation ends a slot of any age here.
      cancelMs: Number.POSITIVE_INFINITY,
      pollIntervalMs: 500,
      idleMs: 90_000,
      mostEnds: 10_000,
      scheduler: SCHEDULER,
      newSecret,
      isPolledHere: (session) => session === polled,
      awayHere: () => undefined,
      isTokenSent: () => false,
      isUndelivered: () => true,
      seenAt: () => now,
    };
  }
}

function standingOf(book: Book, session: string): Standing {
  const lease = book.leaseOf(session);
  if (lease !== undefined && !lease.isReleased) {
    const { key: slotToken, fence, endsAt } = lease;
    return { status: "HELD", slot: { slotToken, fence, leaseMs: endsAt - book.now } };
  }
  const end = lease === undefined ? book.get("ending", session)?.end : "released";
  return end === undefined ? { status: "WAIT" } : { status: "ENDED", end };
}

/** Session `a-1` is of bucket `a`. */
function joining(session: string, now: number) {
  const bucket = session.split("-")[0] as string;
  return { session, bucket, weight: 1, arrivedAt: now, deadlineAt: now + 20_000, openMs: 60_000, width: 1 };
}
