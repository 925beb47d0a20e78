import { RawConnection } from "../service/load/raw-connection.ts";

export interface FleetGrant {
  readonly slotToken: string;
  readonly fence: number;
  /** The instance that answered. */
  readonly instance: number;
}

interface Answer {
  readonly result: string;
  readonly queryToken?: string;
  readonly slotToken?: string;
  readonly fence?: number;
}

const ACQUIRE = "/api/v0/fairqueue/acquire";
const RELEASE = "/api/v0/fairqueue/release";

/** A server closes connections that were idle for 5 s, so older ones are not reused. */
const IDLE_MS = 3_000;

/** One caller with a connection to every instance. `next` chooses the instance of each call. */
export class FleetClient {
  readonly #urls: readonly string[];
  readonly #connections: { readonly connection: RawConnection; usedAt: number }[] = [];
  readonly #next: () => number;
  readonly #waitMs: number;
  #isClosed = false;

  constructor(urls: readonly string[], next: () => number, waitMs: number) {
    this.#urls = urls;
    this.#next = next;
    this.#waitMs = waitMs;
  }

  /** Asks until it is granted; a session that ended otherwise starts again. Returns `undefined` once `isOver`. */
  async acquire(hostname: string, ipBucket: string, isOver: () => boolean): Promise<FleetGrant | undefined> {
    const first = { hostname, ipBucket, waitMs: this.#waitMs };
    let message: object = first;
    while (!isOver()) {
      const instance = this.#next();
      const { status, body } = await this.#post(instance, ACQUIRE, message);
      if (status !== 200) throw new Error(`Expected 200, got ${status}: ${body}`);
      const answer = JSON.parse(body) as Answer;
      if (answer.result === "granted") {
        return { slotToken: answer.slotToken ?? "", fence: answer.fence ?? 0, instance };
      }
      message = answer.result === "pending" ? { queryToken: answer.queryToken } : first;
    }
    return undefined;
  }

  async release(slotToken: string): Promise<void> {
    await this.#post(this.#next(), RELEASE, { slotToken });
  }

  close(): void {
    this.#isClosed = true;
    for (const entry of this.#connections) entry?.connection.close();
  }

  async #post(instance: number, path: string, message: object): Promise<{ status: number; body: string }> {
    let entry = this.#connections[instance];
    if (entry === undefined || performance.now() - entry.usedAt > IDLE_MS) {
      entry?.connection.close();
      entry = { connection: await RawConnection.open(this.#urls[instance] ?? ""), usedAt: 0 };
      this.#connections[instance] = entry;
      if (this.#isClosed) entry.connection.close();
    }
    const reply = await entry.connection.post(path, message);
    entry.usedAt = performance.now();
    return reply;
  }
}
