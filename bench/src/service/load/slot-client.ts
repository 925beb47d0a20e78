import { setTimeout as pause } from "node:timers/promises";
import { RawConnection } from "./raw-connection.ts";

export interface Granted {
  readonly slotToken: string;
  readonly fence: number;
}

interface Answer {
  readonly result: string;
  readonly queryToken?: string;
  readonly slotToken?: string;
  readonly fence?: number;
  readonly retryAfter?: number;
}

const ACQUIRE = "/api/v0/fairqueue/acquire";
const RELEASE = "/api/v0/fairqueue/release";

/** How a client waits: in a call that the server holds, or by asking again after a pause (as in the seed). */
export type Waiting =
  | { readonly kind: "held"; readonly waitMs: number }
  | { readonly kind: "polling"; readonly everyMs: number };

/** One caller of the service on one connection. */
export class SlotClient {
  readonly #connection: RawConnection;
  readonly #waiting: Waiting;

  constructor(connection: RawConnection, waiting: Waiting) {
    this.#connection = connection;
    this.#waiting = waiting;
  }

  static async open(url: string, waiting: Waiting): Promise<SlotClient> {
    return new SlotClient(await RawConnection.open(url), waiting);
  }

  /**
   * Asks until it is granted; a session that ended otherwise starts again. Returns `undefined` once `isOver`. `demand`:
   * more fields of the first call.
   */
  async acquire(
    hostname: string,
    ipBucket: string,
    isOver: () => boolean,
    demand: object = {},
  ): Promise<Granted | undefined> {
    const first = {
      hostname,
      ipBucket,
      ...demand,
      ...(this.#waiting.kind === "held" ? { waitMs: this.#waiting.waitMs } : {}),
    };
    let message: object = first;
    while (!isOver()) {
      const answer = await this.#ask(message);
      if (answer.result === "granted") return { slotToken: answer.slotToken ?? "", fence: answer.fence ?? 0 };
      if (answer.result === "overloaded") await pause((answer.retryAfter ?? 1) * 1000);
      message = answer.result === "pending" ? { queryToken: answer.queryToken } : first;
      if (answer.result === "pending" && this.#waiting.kind === "polling") await pause(this.#waiting.everyMs);
    }
    return undefined;
  }

  async release(slotToken: string, settled: object = {}): Promise<void> {
    await this.#connection.post(RELEASE, { slotToken, ...settled });
  }

  close(): void {
    this.#connection.close();
  }

  async #ask(message: object): Promise<Answer> {
    const { status, body } = await this.#connection.post(ACQUIRE, message);
    if (status !== 200) throw new Error(`Expected 200, got ${status}: ${body}`);
    return JSON.parse(body) as Answer;
  }
}
