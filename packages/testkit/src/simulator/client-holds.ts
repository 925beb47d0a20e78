import type { GrantedAnswer } from "@slotkeeper/protocol";

interface Held {
  readonly slotToken: string;
  readonly host: string;
  readonly bucket: string;
  until: number;
}

/** Who uses a slot now, as the clients see it: what a limit means to the upstream. */
export class ClientHolds {
  readonly #now: () => number;
  readonly #holds = new Set<Held>();
  readonly #owners = new Map<string, string>();
  /** Two clients were given one token. */
  readonly faults: string[] = [];

  constructor(now: () => number) {
    this.#now = now;
  }

  start({ slotToken, session, leaseMs }: GrantedAnswer, host: string, bucket: string): Held {
    const owner = this.#owners.get(slotToken);
    if (owner !== undefined && owner !== session.id) this.faults.push(`${owner} and ${session.id} were given one slot`);
    this.#owners.set(slotToken, session.id);
    const held = { slotToken, host, bucket, until: this.#now() + leaseMs };
    this.#holds.add(held);
    return held;
  }

  stop(held: Held): void {
    this.#holds.delete(held);
  }

  count(host: string, bucket?: string): number {
    let count = 0;
    for (const held of this.#holds) {
      if (held.host === host && (bucket === undefined || held.bucket === bucket) && held.until > this.#now()) count++;
    }
    return count;
  }
}
