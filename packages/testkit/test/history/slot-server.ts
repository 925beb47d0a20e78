import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** What is wrong with the server. */
export type Fault =
  | "grants one slot too many"
  | "gives the same token twice"
  | "lets fences fall"
  | "loses releases"
  | "forgets leases"
  | "serves the youngest first"
  | "serves one bucket first"
  | "ends sessions early";

interface Waiter {
  readonly number: number;
  readonly bucket: string;
  readonly isOver: () => boolean;
  readonly answer: (body: object) => void;
  readonly timer: NodeJS.Timeout;
}

/** How long a call is held open. */
const WINDOW_MS = 300;

/**
 * A small slot server over HTTP with one host, for the checker to judge: correct, or with one fault. It gives the buckets
 * their slots in turns, and never takes a slot back.
 */
export class SlotServer {
  readonly #server: Server;
  readonly #slots: number;
  readonly #fault: Fault | undefined;
  readonly #held = new Map<string, string>();
  readonly #used = new Map<string, number>();
  #waiters: Waiter[] = [];
  #count = 0;
  #lost = 0;

  private constructor(slots: number, fault: Fault | undefined) {
    this.#slots = slots;
    this.#fault = fault;
    this.#server = createServer((request, response) => {
      const answer = (status: number, body: object) => {
        response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
      };
      void this.#take(request, answer, () => response.destroyed);
    });
  }

  static async start(slots: number, fault?: Fault): Promise<SlotServer> {
    const server = new SlotServer(slots, fault);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    for (const { timer } of this.#waiters) clearTimeout(timer);
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #take(request: IncomingMessage, answer: (status: number, body: object) => void, isOver: () => boolean) {
    const body = JSON.parse(await text(request)) as { ipBucket?: string; slotToken?: string; queryToken?: string };
    if (request.url?.endsWith("/acquire") === true) this.#acquire(body, (reply) => answer(200, reply), isOver);
    else if (request.url?.endsWith("/renew") === true) {
      if (this.#fault === "forgets leases") answer(410, {});
      else answer(200, { result: "ok", leaseMs: 30_000 });
    } else {
      answer(200, { result: "ok" });
      const isLost = this.#fault === "loses releases" && this.#lost++ < this.#slots;
      if (!isLost) this.#held.delete(body.slotToken ?? "");
    }
    this.#handOut();
  }

  /** The query token has the number of the session and its bucket. */
  #acquire(
    { ipBucket = "", queryToken }: { ipBucket?: string; queryToken?: string },
    answer: Waiter["answer"],
    isOver: Waiter["isOver"],
  ): void {
    const [number = "", bucket = ""] = queryToken?.split(" ") ?? [String(this.#count++), ipBucket];
    if (this.#fault === "ends sessions early" && Number(number) % 5 === 4) {
      answer({ result: "timeout", reason: "deadline" });
      return;
    }
    const timer = setTimeout(() => {
      this.#waiters = this.#waiters.filter((other) => other !== waiter);
      answer({ result: "pending", queryToken: `${number} ${bucket}` });
    }, WINDOW_MS);
    const waiter: Waiter = { number: Number(number), bucket, isOver, answer, timer };
    this.#waiters.push(waiter);
  }

  #handOut(): void {
    const slots = this.#slots + (this.#fault === "grants one slot too many" ? 1 : 0);
    while (this.#held.size < slots) {
      const waiter = this.#next();
      if (waiter === undefined) return;
      this.#waiters = this.#waiters.filter((other) => other !== waiter);
      clearTimeout(waiter.timer);
      if (waiter.isOver()) continue;
      const { number, bucket } = waiter;
      const slotToken = `slot_${this.#fault === "gives the same token twice" ? number % 3 : number}`;
      const grant = this.#used.size + [...this.#used.values()].reduce((sum, count) => sum + count, 0);
      this.#used.set(bucket, (this.#used.get(bucket) ?? 0) + 1);
      this.#held.set(slotToken, bucket);
      const fence = this.#fault === "lets fences fall" ? 1_000_000 - grant : grant + 1;
      waiter.answer({
        result: "granted",
        queryToken: `${number} ${bucket}`,
        slotToken,
        fence,
        leaseMs: 30_000,
        limit: this.#slots,
      });
    }
  }

  /** The first waiter of the bucket that had the fewest grants. */
  #next(): Waiter | undefined {
    const order = [...this.#waiters];
    if (this.#fault === "serves the youngest first") return order.sort((a, b) => b.number - a.number)[0];
    const rank = ({ bucket }: Waiter) =>
      this.#fault === "serves one bucket first" ? bucket.localeCompare("b-0") : (this.#used.get(bucket) ?? 0);
    return order.sort((a, b) => rank(a) - rank(b) || a.number - b.number)[0];
  }
}
