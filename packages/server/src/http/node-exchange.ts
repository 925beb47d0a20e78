import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { LIMITS } from "@slotkeeper/protocol";
import { newRequestId } from "../platform/node-crypto.ts";
import { isLoopback } from "../platform/system.ts";
import { isOwnOrigin } from "./access.ts";
import { BaseExchange, type Body, type Exchange, type Headers, type Leaving, NO_SNIFF, parseBody } from "./exchange.ts";

/** How much of a body that is too large is read and discarded, so that the caller can read why it was refused. */
const DRAINED_BYTES = 1024 * 1024;

/** An exchange over a connection of `node:http`. */
export class NodeExchange extends BaseExchange implements Exchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #isBoundToLoopback: boolean;
  readonly id: string;
  readonly path: string;

  /** `isBoundToLoopback` is true if only this machine can reach the listener. */
  constructor(request: IncomingMessage, response: ServerResponse, isBoundToLoopback: boolean) {
    super();
    normaliseTarget(request);
    const { url = "/" } = request;
    const query = url.indexOf("?");
    this.#request = request;
    this.#response = response;
    this.#isBoundToLoopback = isBoundToLoopback;
    this.path = query === -1 ? url : url.slice(0, query);
    // The id of the caller is kept if it is harmless, so that the logs of both sides can be compared.
    const id = this.header("x-request-id");
    this.id = id !== undefined && /^[\w.:-]{1,64}$/.test(id) ? id : newRequestId();
  }

  get method(): string {
    return this.#request.method ?? "";
  }

  get query(): URLSearchParams {
    return new URL(this.#request.url ?? "/", "http://service").searchParams;
  }

  get peer(): string {
    return this.#request.socket.remoteAddress ?? "unknown";
  }

  /**
   * Not a browser sent here by a page of another site, nor, as far as a request shows it, a caller behind a proxy on this
   * machine. Old proxies speak HTTP/1.0 and add no header; browsers, curl and our clients speak HTTP/1.1. A proxy that
   * speaks HTTP/1.1 and adds no header cannot be recognised, so behind a proxy a token must be configured.
   */
  get isLocal(): boolean {
    if (!this.#isBoundToLoopback || !isLoopback(this.peer)) return false;
    const { headers, httpVersion } = this.#request;
    if (httpVersion !== "1.1") return false;
    const { host = "", origin } = headers;
    if (!/^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/i.test(host)) return false;
    if (origin !== undefined && !isOwnOrigin(origin, host)) return false;
    return !Object.keys(headers).some((name) => OF_A_PROXY.test(name));
  }

  /** Without exactly one `Host`, two readers of the same request may see different hosts. HTTP/1.0 needs none. */
  get hasOneHost(): boolean {
    const { rawHeaders, httpVersion } = this.#request;
    let hosts = 0;
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at] as string;
      if (name.length === 4 && name.toLowerCase() === "host") hosts++;
    }
    return hosts === 1 || (hosts === 0 && httpVersion === "1.0");
  }

  get status(): number {
    return this.#response.writableEnded ? this.#response.statusCode : 0;
  }

  get leaving(): Leaving | undefined {
    if (this.#response.destroyed) return "left";
    return this.#request.socket.isPaused() ? "crowded" : undefined;
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name];
    return typeof value === "string" ? value : undefined;
  }

  onLeave(listener: (why: Leaving) => void): void {
    this.#response.on("close", () => listener("left"));
    this.#response.on(CROWDED, () => listener("crowded"));
  }

  setHeader(name: string, value: string): void {
    this.#response.setHeader(name, value);
  }

  /** Bytes that several answers share are not copied: callers that do not read cost one copy in all. */
  send(status: number, type: string, body: string | Uint8Array, headers?: Headers): void {
    const response = this.#response;
    const bytes = Buffer.byteLength(body);
    const own = {
      "Content-Type": type,
      "Content-Length": bytes,
      "Cache-Control": "no-store",
      ...NO_SNIFF,
      "X-Request-Id": this.id,
    };
    response.writeHead(status, headers === undefined ? own : { ...own, ...headers });
    if (this.#request.method !== "HEAD") writeAtOnce(response, body, bytes === body.length ? "latin1" : "utf8");
    response.end();
  }

  empty(status: 204 | 304, headers?: Headers): void {
    this.#response.writeHead(status, { ...NO_SNIFF, "X-Request-Id": this.id, ...headers });
    this.#response.end();
  }

  stream(type: string, headers: Headers): ServerResponse | undefined {
    const response = this.#response;
    response.writeHead(200, { ...NO_SNIFF, "Content-Type": type, "X-Request-Id": this.id, ...headers });
    if (this.#request.method !== "HEAD") return response;
    response.end();
    return undefined;
  }

  fail(): void {
    if (this.#response.headersSent) this.#response.destroy();
    else this.problem("INTERNAL");
  }

  /** A caller that disconnects before its request is complete gets no answer. */
  body(): Promise<Body> {
    return new Promise((resolve) => {
      let chunks: Buffer[] = [];
      let size = 0;
      // The request lives longer than its body, as long as the call is held. Its listeners must not keep the body alive.
      let finish: ((body: Body) => void) | undefined = resolve;
      const done = (body: Body) => {
        finish?.(body);
        finish = undefined;
        chunks = [];
      };
      this.#request.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size <= LIMITS.bodyBytes) chunks.push(chunk);
        else if (size > DRAINED_BYTES) done({ kind: "too-large", isDrained: false });
      });
      this.#request.on("end", () => {
        if (size > LIMITS.bodyBytes) return done({ kind: "too-large", isDrained: true });
        const bytes = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks);
        done(parseBody(bytes.toString(), () => isUtf8(bytes)));
      });
    });
  }
}

/** Headers that proxies add. */
const OF_A_PROXY =
  /^(?:(?:forwarded|via|cdn-loop|x-real-ip|x-proxyuser-ip|(?:true-|x-|x-cluster-)?client-ip)$|(?:cf|fastly|fly|x-amzn|x-azure|x-envoy|x-forwarded|x-original)-)/;

const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/**
 * Converts an absolute-form target (`GET http://host/path`) to the usual form. Its host becomes the host of the
 * request, and the `Host` header is ignored (RFC 9112, 3.2.2). So all later checks see the same host.
 */
function normaliseTarget(request: IncomingMessage): void {
  const { url = "/" } = request;
  if (url.startsWith("/")) return;
  const [, authority, rest = ""] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return;
  request.headers.host = authority.slice(authority.lastIndexOf("@") + 1);
  request.url = rest.startsWith("/") ? rest : `/${rest}`;
}

/**
 * Writes head and body in one piece. `end(body)` would pass a second, empty piece to the system, which costs more than
 * the body (S1). A response whose caller has left has no socket.
 */
function writeAtOnce(response: ServerResponse, body: string | Uint8Array, encoding: "latin1" | "utf8"): void {
  response.socket?.cork();
  response.write(body, encoding);
  response.socket?.uncork();
}

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** One connection: the answer that is being made, and what waits for it. */
interface Line {
  serving: ServerResponse | undefined;
  readonly waiting: Waiting[];
  isRefused: boolean;
}

interface Waiting {
  /** `undefined` for a refusal. */
  readonly request: IncomingMessage | undefined;
  readonly start: () => void;
}

/** A connection with this number of waiting requests is not read. */
const MOST_WAITING = 16;

/** Sent to the response being served when its connection is no longer read. */
const CROWDED = "crowded";

/**
 * Serves the requests of each connection one after the other. A client may send several without waiting for answers
 * (pipelining), and Node would serve all of them at once.
 *
 * PIPE1  A request is served when the answer before it has been passed to the system. So a connection has one answer in
 *     memory and one held call, whatever its caller sends and however slowly it reads.
 * PIPE2  A connection with `MOST_WAITING` waiting requests is not read. One read may bring some thousand, of 64 KiB.
 * PIPE3  Only the request being served has a socket, so its response is the one that Node closes with the connection.
 *     The others are dropped then.
 * PIPE4  In one turn of the event loop, a connection gets one of its waiting requests served.
 * PIPE5  Invalid HTTP is refused after the answers to the requests before it. A request whose own body is invalid has no
 *     other answer.
 *
 * A connection that is not read does not notice that its caller has left until an answer is written. So no call is held
 * for it (HELD5).
 */
export class Pipelines {
  readonly #serve: Serve;
  readonly #lines = new WeakMap<Socket, Line>();

  constructor(serve: Serve) {
    this.#serve = serve;
  }

  readonly take = (request: IncomingMessage, response: ServerResponse): void => {
    const { socket } = request;
    const line = this.#lines.get(socket) ?? this.#newLine(socket);
    const start = () => {
      line.serving = response;
      response.once("close", () => this.#next(line, socket));
      this.#serve(request, response);
    };
    if (line.serving === undefined) start();
    else this.#wait(socket, line, { request, start });
  };

  /** Calls `refuse` when the requests before it are answered; once for a connection. */
  refuse(socket: Socket, refuse: () => void): void {
    const line = this.#lines.get(socket) ?? this.#newLine(socket);
    if (line.isRefused) return;
    line.isRefused = true;
    const [last] = line.waiting.slice(-1);
    if (last?.request?.complete === false) line.waiting.pop();
    const isServedValid = line.serving?.req.complete === true;
    if (isServedValid) this.#wait(socket, line, { request: undefined, start: refuse });
    else refuse();
  }

  #wait(socket: Socket, line: Line, waiting: Waiting): void {
    line.waiting.push(waiting);
    hold(socket, line);
    if (line.waiting.length === MOST_WAITING) line.serving?.emit(CROWDED);
  }

  #newLine(socket: Socket): Line {
    const line: Line = { serving: undefined, waiting: [], isRefused: false };
    this.#lines.set(socket, line);
    // Node resumes a socket for reasons of its own.
    socket.on("resume", () => hold(socket, line));
    return line;
  }

  #next(line: Line, socket: Socket): void {
    if (line.waiting.length === 0 || socket.destroyed) {
      line.serving = undefined;
      line.waiting.length = 0;
      return;
    }
    setImmediate(() => {
      const isHeld = line.waiting.length >= MOST_WAITING;
      const next = line.waiting.shift();
      if (isHeld && line.waiting.length < MOST_WAITING) socket.resume();
      next?.start();
    });
  }
}

function hold(socket: Socket, { waiting }: Line): void {
  if (waiting.length >= MOST_WAITING) socket.pause();
}
