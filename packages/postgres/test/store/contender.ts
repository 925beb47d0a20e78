import type { BookImage, CommitReply, Head, HostStore, LeaseRecord, RecordName } from "@slotkeeper/queue";
import { headOf, leaseOf } from "@slotkeeper/testkit/store-conformance";

/** An instance that knows only the limits: it takes a slot if the book has a free one, and releases it. */
export class Contender {
  static #tags = 0;
  readonly #store: HostStore;
  readonly #host: string;
  readonly #instance: string;
  readonly #slots: number;
  readonly #mayTake: () => Promise<void>;
  conflicts = 0;

  /** `mayTake` delays a commit that takes a slot, after the book was read. */
  constructor(
    store: HostStore,
    host: string,
    instance: string,
    slots: number,
    mayTake = async (): Promise<void> => {},
  ) {
    this.#store = store;
    this.#host = host;
    this.#instance = instance;
    this.#slots = slots;
    this.#mayTake = mayTake;
  }

  /** Undefined: no slot of the host or of the bucket is free. */
  async take(bucket: string): Promise<LeaseRecord | undefined> {
    for (let conflicts = 0; ; conflicts++) {
      const { tag, now, book } = await this.#read();
      const live = (book?.records ?? []).filter(
        (record): record is LeaseRecord => record.kind === "lease" && record.endsAt > now,
      );
      if (live.length >= this.#slots || live.some((lease) => lease.bucket === bucket)) return undefined;
      const head = { ...(book?.head ?? headOf(now)), slots: this.#slots };
      const fence = Math.max(head.fence + 1, Math.floor(now * 1000));
      const name = `${this.#instance}-${Contender.#tags}`;
      // One session for each bucket, so that the auditor finds a second lease of either.
      const more = { bucket, session: bucket, instance: this.#instance, keepUntil: now };
      const lease = leaseOf(name, fence, now, more);
      await this.#mayTake();
      const reply = await this.#commit({ tag, now, conflicts }, { ...head, fence }, [lease], []);
      if (reply.isOk) return lease;
    }
  }

  async giveBack({ key }: LeaseRecord): Promise<void> {
    for (let conflicts = 0; ; conflicts++) {
      const { tag, now, book } = await this.#read();
      if (book === undefined || !book.records.some((record) => record.key === key)) return;
      const reply = await this.#commit({ tag, now, conflicts }, book.head, [], [["lease", key]]);
      if (reply.isOk) return;
    }
  }

  async #read(): Promise<{ tag: string | undefined; now: number; book: BookImage | undefined }> {
    const { tag, now, tail } = await this.#store.read(this.#host, undefined);
    return { tag, now, book: tail.kind === "book" ? tail.book : undefined };
  }

  async #commit(
    {
      tag: base,
      now,
      conflicts,
    }: { readonly tag: string | undefined; readonly now: number; readonly conflicts: number },
    head: Head,
    puts: readonly LeaseRecord[],
    dels: readonly RecordName[],
  ): Promise<CommitReply> {
    const tag = `${Number.parseInt(base ?? "0", 10) + 1}.${this.#instance}${Contender.#tags++}`;
    const changes = { head: { ...head, now: Math.max(head.now, now) }, puts, dels };
    const rest = { host: this.#host, instance: this.#instance, hasOthers: true, wake: [], conflicts };
    const reply = await this.#store.commit({ ...rest, base, tag, now, changes });
    if (!reply.isOk) this.conflicts++;
    return reply;
  }
}
