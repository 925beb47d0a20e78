import { commitArguments } from "@slotkeeper/postgres/internals";
import type { Changes, Commit, Head } from "@slotkeeper/queue";
import { accountOf, headOf, leaseOf, sessionOf, waiterOf } from "@slotkeeper/testkit/store-conformance";

const HOST = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const SESSION = "f0123456789abcdef0123456789abcdef";

/**
 * The commits of a hot host: the first one with many buckets and waiters, then hand-overs. Each hand-over is a release
 * and the next grant, and changes seven records. Names are as long as real ones.
 */
export class HandOvers {
  readonly host = HOST;
  readonly #buckets: number;
  #head: Head;
  #number = 0;

  constructor(buckets: number, now: number) {
    this.#buckets = buckets;
    const weighted = { isHot: true, triedAt: now, turnAt: now };
    const more = { lastEndAt: now, avgWaitMs: 4321.125, weighted };
    this.#head = { ...headOf(now), slots: 4, ...more };
  }

  /** The state before the first hand-over. Hand-overs take the waiters in order. */
  first(waiters: number, now: number): Commit {
    const puts = [
      ...Array.from({ length: this.#buckets }, (_, at) => accountOf(`bucket-${at}`, now, 1234.5 * at)),
      ...Array.from({ length: waiters }, (_, at) =>
        waiterOf(`${SESSION}${at + 1}`, now, { bucket: this.#bucket(at + 1) }),
      ),
      this.#lease(0, now),
    ];
    return this.#commit(now, { puts, dels: [] });
  }

  next(now: number): Commit {
    const at = ++this.#number;
    const puts = [
      this.#lease(at, now),
      sessionOf(`${SESSION}${at - 1}`, now + 60_000),
      accountOf(this.#bucket(at - 1), now, now / 3),
      accountOf(this.#bucket(at), now, now / 7),
    ];
    const dels = [
      ["lease", this.#token(at - 1)],
      ["waiter", `s-${SESSION}${at}`],
    ] as const;
    return this.#commit(now, { puts, dels });
  }

  /** The call of `slotkeeper_commit` as the store sends it, except that its time is never too old on a busy machine. */
  static callOf(commit: Commit): { readonly text: string; readonly values: unknown[] } {
    const given = { p_schema: 1, ...commitArguments(commit) };
    const list = Object.keys(given).map((name, at) =>
      name === "p_now" ? `${name} => greatest($${at + 1}, slotkeeper_now() - 500)` : `${name} => $${at + 1}`,
    );
    return { text: `SELECT slotkeeper_commit(${list.join(", ")}) AS reply`, values: Object.values(given) };
  }

  #commit(now: number, changes: Pick<Changes, "puts" | "dels">): Commit {
    const fence = this.#head.fence + 1;
    this.#head = { ...this.#head, now, fence, meterAt: now, progress: now / 17.3, lastEndAt: now };
    const base = this.#number === 0 ? undefined : this.#tag(this.#number);
    const rest = { host: HOST, instance: "one", hasOthers: true, wake: [], conflicts: 0 };
    return { ...rest, base, tag: this.#tag(this.#number + 1), now, changes: { head: this.#head, ...changes } };
  }

  #lease(at: number, now: number) {
    const session = `s-${SESSION}${at}`;
    return leaseOf("", this.#head.fence + 1, now, { key: this.#token(at), session, bucket: this.#bucket(at) });
  }

  #token(at: number): string {
    return `slot_${HOST}.abcdefghijklmnopqrst${at}`;
  }

  #bucket(at: number): string {
    return `bucket-${at % this.#buckets}`;
  }

  #tag(number: number): string {
    return `${number}.abcdefghijkl`;
  }
}
