import type { GrantedAnswer } from "@slotkeeper/protocol";

interface Held {
  readonly slotToken: string;
  readonly host: string;
  readonly bucket: string;
  readonly width: number;
  until: number;
}

/** The slots that clients use now, from the point of view of the upstream. */
export class ClientHolds {
  readonly #now: () => number;
  readonly #holds = new Set<Held>();

  constructor(now: () => number) {
    this.#now = now;
  }

  start({ slotToken, width }: GrantedAnswer, host: string, bucket: string, until: number): Held {
    const held = { slotToken, host, bucket, width, until };
    this.#holds.add(held);
    return held;
  }

  stop(held: Held): void {
    this.#holds.delete(held);
  }

  count(host: string, bucket?: string): number {
    let count = 0;
    for (const held of this.#holds) {
      if (held.host === host && (bucket === undefined || held.bucket === bucket) && held.until > this.#now())
        count += held.width;
    }
    return count;
  }
}
