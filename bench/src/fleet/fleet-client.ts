import { RawConnection } from "../service/load/raw-connection.ts";

export interface FleetGrant {
  readonly slotToken: string;
  readonly fence: number;
  /** Which instance answered. */
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

/** One caller with a connection to every instance. `next` says which one each call goes to. */
export class FleetClient {
  readonly #connections: readonly RawConnection[];
  readonly #next: () => number;

  private constructor(connections: readonly RawConnection[], next: () => number) {
    this.#connections = connections;
    this.#next = next;
  }

  static async open(urls: readonly string[], next: () => number): Promise<FleetClient> {
    return new FleetClient(await Promise.all(urls.map((url) => RawConnection.open(url))), next);
  }

  /** Asks until it is granted: a session that ended otherwise is begun anew. Undefined once `isOver`. */
  async acquire(hostname: string, ipBucket: string, isOver: () => boolean): Promise<FleetGrant | undefined> {
    const first = { hostname, ipBucket, waitMs: 600_000 };
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
    for (const connection of this.#connections) connection.close();
  }

  #post(instance: number, path: string, message: object): Promise<{ status: number; body: string }> {
    return (this.#connections[instance] as RawConnection).post(path, message);
  }
}
