import type { HostPolicy } from "../host-policy.ts";
import type { StoreFact } from "./facts.ts";
import type { HostBook } from "./host-book.ts";
import type { Lease } from "./lease.ts";
import type { SessionEnd } from "./slot-store.ts";

/** Puts what happens in the memory store into facts. Called after the change, in the same turn. */
export class FactLog {
  readonly #sink: (fact: StoreFact) => void;
  readonly #texts = new WeakMap<HostPolicy, string>();
  #told = new WeakMap<HostBook, string>();

  constructor(sink: (fact: StoreFact) => void) {
    this.#sink = sink;
  }

  granted(book: HostBook, lease: Lease, keepUntil: number): void {
    this.#host(book);
    this.#sink(leaseFact(lease, keepUntil));
  }

  renewed({ fence, endsAt }: Lease): void {
    this.#sink({ kind: "renew", slot: fence, endsAt });
  }

  released({ fence, endsAt }: Lease): void {
    this.#sink({ kind: "release", slot: fence, endsAt });
  }

  revoked({ fence }: Lease): void {
    this.#sink({ kind: "over", slot: fence });
  }

  undone({ fence }: Lease): void {
    this.#sink({ kind: "undo", slot: fence });
  }

  ended(session: string, end: SessionEnd, keepUntil: number): void {
    this.#sink({ kind: "end", session, end, keepUntil });
  }

  cooled(book: HostBook, bucket: string, until: number): void {
    this.#sink({ kind: "cooldown", host: book.host, bucket, until });
  }

  unspaced(book: HostBook): void {
    this.#sink({ kind: "spacing", host: book.host });
  }

  breaker(book: HostBook): void {
    this.#host(book);
    this.#sink({ kind: "breaker", host: book.host, state: book.breaker.state });
  }

  limits(book: HostBook): void {
    this.#host(book);
    const { host, live } = book;
    this.#sink({ kind: "limits", host, ...(live === undefined ? {} : { limits: live }) });
  }

  /** The host's policy, unless the log has it: `renew` and `release` come without one. */
  #host(book: HostBook): void {
    const text = `${book.capacity} ${this.#textOf(book.policy)}`;
    if (this.#told.get(book) === text) return;
    this.#told.set(book, text);
    this.#sink(hostFact(book));
  }

  /** What was said before will not be read again. */
  forget(): void {
    this.#told = new WeakMap();
  }

  /** The order is left out: the weighted scheduler changes it from batch to batch, and no lease depends on it. */
  #textOf(policy: HostPolicy): string {
    let text = this.#texts.get(policy);
    if (text === undefined) {
      text = JSON.stringify({ ...policy, order: undefined });
      this.#texts.set(policy, text);
    }
    return text;
  }
}

export function leaseFact(lease: Lease, keepUntil: number): StoreFact {
  const { slotToken, session, host, grantedAt, endsAt, isProbe, isReleased } = lease;
  const { bucket, weight } = lease.account;
  const who = { slot: lease.fence, slotToken, session, host, bucket, weight };
  return { kind: "lease", ...who, grantedAt, endsAt, keepUntil, isProbe, isReleased };
}

export function hostFact({ host, policy, capacity }: HostBook): StoreFact {
  return { kind: "host", host, policy, ...(capacity === undefined ? {} : { capacity }) };
}
