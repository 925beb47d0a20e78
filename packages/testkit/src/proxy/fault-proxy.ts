/**
 * A proxy between a real client and a real server that simulates failures of networks and machines for HTTP calls.
 *
 * Every call is forwarded and answered as a whole unless its fault changes that. `seen` lists all calls in order.
 */
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { LoopbackServer, textOf } from "./loopback-server.ts";

export type Fault =
  | "none"
  /** The connection is reset before the call is read. */
  | "reset"
  /** The call is lost: it is never forwarded and never answered. */
  | "black-hole"
  /** The call is forwarded, but its answer is lost with the connection. */
  | "lost-answer"
  /** The call is forwarded, but only half of the body of its answer arrives, as if that were all. */
  | "truncated"
  /** The call is forwarded, and answered after this time. */
  | { readonly slowMs: number }
  /** The proxy answers, like a gateway without a server behind it. */
  | { readonly status: number; readonly headers?: Record<string, string> };

export interface SeenCall {
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingMessage["headers"];
  readonly at: number;
}

export class FaultProxy {
  readonly seen: SeenCall[] = [];
  /** The fault of every call from now on, or a function that chooses it for each call. */
  fault: Fault | ((call: SeenCall) => Fault) = "none";
  readonly #target: string;
  readonly #server = new LoopbackServer((incoming, outgoing) => void this.#answer(incoming, outgoing));

  constructor(target: string) {
    this.#target = target;
  }

  static async start(target: string): Promise<FaultProxy> {
    const proxy = new FaultProxy(target);
    await proxy.accept();
    return proxy;
  }

  get url(): string {
    return this.#server.url;
  }

  /** Listens, on the same port as before. */
  accept(): Promise<void> {
    return this.#server.accept();
  }

  /** Refuses connections, and ends the open ones, until `accept`. */
  refuse(): Promise<void> {
    return this.#server.refuse();
  }

  /** The calls to this path, for example `acquire`. */
  calls(name: string): SeenCall[] {
    return this.seen.filter(({ path }) => path.endsWith(`/${name}`));
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { url: path = "/", headers } = incoming;
    const body = await textOf(incoming).catch(() => undefined);
    if (body === undefined) return;
    const call = { path, body, headers, at: Date.now() };
    this.seen.push(call);
    const fault = typeof this.fault === "function" ? this.fault(call) : this.fault;
    if (fault === "black-hole") return;
    if (fault === "reset") return void incoming.socket.resetAndDestroy();
    if (typeof fault === "object" && "status" in fault) {
      return void outgoing.writeHead(fault.status, fault.headers).end("<h1>no server here</h1>");
    }
    try {
      const { status, headers: answered, text } = await this.#forward(incoming, outgoing, call);
      if (fault === "lost-answer") return void incoming.socket.resetAndDestroy();
      if (typeof fault === "object" && "slowMs" in fault) await new Promise((done) => setTimeout(done, fault.slowMs));
      const { "content-length": _, ...rest } = answered;
      outgoing.writeHead(status, rest).end(changed(text, fault));
    } catch {
      // The server or the caller has disconnected.
      outgoing.destroy();
    }
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse, { path, body, headers }: SeenCall): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const onward = request(this.#target + path, { method: incoming.method, headers }, (answer) => {
        textOf(answer).then(
          (text) => resolve({ status: answer.statusCode ?? 502, headers: answer.headers, text }),
          reject,
        );
      });
      onward.on("error", reject);
      // If the caller disconnects, the connection to the server is closed, too.
      outgoing.on("close", () => onward.destroy());
      onward.end(body);
    });
  }
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

function changed(text: string, fault: Fault): string {
  return fault === "truncated" ? text.slice(0, text.length / 2) : text;
}
