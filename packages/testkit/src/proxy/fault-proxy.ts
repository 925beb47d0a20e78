/**
 * A proxy between a real client and a real server that can do to HTTP calls what networks and machines do to them.
 *
 * Every call is forwarded whole and answered whole unless its fault says otherwise; `seen` lists them all, in order.
 */
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { LoopbackServer, textOf } from "./loopback-server.ts";

export type Fault =
  | "none"
  /** The connection is reset before the call is read. */
  | "reset"
  /** The call vanishes: it is never forwarded and never answered. */
  | "black-hole"
  /** The call is forwarded; its answer is lost with the connection. */
  | "lost-answer"
  /** The call is forwarded; half of its answer's body comes, as if that were all. */
  | "truncated"
  /** The call is forwarded and answered after so long. */
  | { readonly slowMs: number }
  /** Answered here, by a gateway that has no server behind it. */
  | { readonly status: number; readonly headers?: Record<string, string> };

export interface SeenCall {
  readonly path: string;
  readonly body: string;
  readonly headers: IncomingMessage["headers"];
  readonly at: number;
}

export class FaultProxy {
  readonly seen: SeenCall[] = [];
  /** Of every call from now on; or chosen call by call. */
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

  /** Connections are refused, and those there are end, until `accept`. */
  refuse(): Promise<void> {
    return this.#server.refuse();
  }

  /** Calls to this path, for example `acquire`. */
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
      // The server is gone, or the caller is.
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
      // A caller that hangs up hangs up on the server.
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
