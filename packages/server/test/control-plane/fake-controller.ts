import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach } from "vitest";

export type Counts = Record<string, number>;

export interface MetricsBody {
  source: string;
  env: string;
  instance_id: string;
  events: { type: string; ts: number; configVersion: string; counts: Counts; [key: string]: unknown }[];
}

/**
 * What the controller does with the next calls of a path, one after the other. After these it answers normally.
 *   refuse       cuts the connection before anything is read: not accepted
 *   status       answers with this status, not accepted
 *   lose         accepts it, and cuts the connection instead of answering
 *   hang         accepts nothing and never answers
 *   text         200 with this body
 */
export type Mishap =
  | { readonly kind: "refuse" | "lose" | "hang" }
  | { readonly kind: "status"; readonly status: number; readonly location?: string }
  | { readonly kind: "text"; readonly text: string };

const running = new Set<FakeController>();

/** A control plane over real HTTP. It checks tokens, keeps what it accepted, and fails on request. */
export class FakeController {
  tokens: string[] = ["controller-token-1"];
  answer: unknown = { configVersion: "v1", slotHandler: {} };
  readonly bootstraps: Record<string, unknown>[] = [];
  /** Everything it accepted, in order. */
  readonly taken: MetricsBody[] = [];
  readonly mishaps: { bootstrap: Mishap[]; metrics: Mishap[] } = { bootstrap: [], metrics: [] };
  calls = 0;
  readonly #server: Server;
  #port = 0;

  constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async up(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
    running.add(this);
    return this;
  }

  async down(): Promise<void> {
    running.delete(this);
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** The counts of a controller that accepts each (`instance_id`, `ts`) once. */
  counted(): Counts {
    const seen = new Set<string>();
    const total: Counts = {};
    for (const { instance_id, events } of this.taken) {
      for (const { ts, counts } of events) {
        if (seen.has(`${instance_id} ${ts}`)) continue;
        seen.add(`${instance_id} ${ts}`);
        for (const [name, count] of Object.entries(counts)) total[name] = (total[name] ?? 0) + count;
      }
    }
    return total;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.calls++;
    const path = request.url?.endsWith("/bootstrap") === true ? "bootstrap" : "metrics";
    const mishap = this.mishaps[path].shift();
    if (mishap?.kind === "refuse") {
      request.socket.destroy();
      return;
    }
    let text = "";
    for await (const chunk of request) text += String(chunk);
    if (mishap?.kind === "hang") return;
    if (mishap?.kind === "status") {
      const { status, location } = mishap;
      response.writeHead(status, location === undefined ? {} : { location }).end("no");
      return;
    }
    const token = request.headers.authorization?.replace("Bearer ", "") ?? "";
    if (!this.tokens.includes(token)) {
      response.writeHead(401).end();
      return;
    }
    if (path === "metrics") this.taken.push(JSON.parse(text) as MetricsBody);
    else this.bootstraps.push({ ...(JSON.parse(text) as object), path: request.url });
    if (mishap?.kind === "lose") request.socket.destroy();
    else if (mishap?.kind === "text") response.end(mishap.text);
    else response.end(path === "metrics" ? "" : JSON.stringify(this.answer));
  }
}

afterEach(async () => {
  await Promise.all([...running].map((controller) => controller.down()));
});
