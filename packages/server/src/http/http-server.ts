import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { ListenAddress, ServiceLimits } from "../config/settings.ts";
import { LogThrottle } from "../log/log-throttle.ts";
import { newRequestId } from "../platform/node-crypto.ts";
import { connectionsAllowed, isLoopback } from "../platform/system.ts";
import type { ServiceContext } from "./context.ts";
import { answering } from "./dispatch.ts";
import { PROBLEM_TYPE, problemBody } from "./exchange.ts";
import { answerTooBusy, countIn, type LimitName, type Refusals } from "./held-calls.ts";
import { NodeExchange, Pipelines } from "./node-exchange.ts";
import { SERVICE_ROUTER } from "./routes/service.ts";

/**
 * Longer than the idle timeout of common balancers (60 s): the balancer closes first, and never writes into a closed
 * connection.
 */
const KEEP_ALIVE_MS = 75_000;
/** How long a request may take to arrive. It does not limit how long the call is held afterwards. */
const RECEIVE_MS = 30_000;
/** How long the head of a request may take. It is one packet, so a slow head is suspicious. */
const RECEIVE_HEAD_MS = 10_000;
/** How often connections are checked for the two limits above. */
const CHECK_EVERY_MS = 2_000;
/** Ten thousand clients may reconnect at once after a restart. */
const BACKLOG = 4096;
/** How long a refused caller has to send its request, and to read the answer. */
const LINGER_MS = 500;

export class HttpServer {
  readonly #server: Server;
  readonly #connections: Connections;
  readonly #pipelines: Pipelines;
  readonly #context: ServiceContext;
  readonly #throttle = new LogThrottle({ burst: 10, everyMs: 6_000 });
  /** Whether only this machine can reach the server. Known as soon as it listens. */
  #isBoundToLoopback = false;

  constructor(context: ServiceContext) {
    this.#context = context;
    const options = {
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: RECEIVE_HEAD_MS,
      requestTimeout: RECEIVE_MS,
      connectionsCheckingInterval: CHECK_EVERY_MS,
      // `#serve` answers this mistake like any other.
      requireHostHeader: false,
    };
    this.#connections = new Connections(() => context.live.limits, context.refusals);
    this.#pipelines = new Pipelines((request, response) => this.#serve(request, response));
    const { take } = this.#pipelines;
    this.#server = createServer(options, take);
    // Node must not drop headers, however many there are (their size is limited): a proxy adds its own at the end.
    this.#server.maxHeadersCount = 0;
    this.#server.on("checkExpectation", take);
    this.#connections.watch(this.#server);
    this.#server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => this.#refuse(error, socket));
  }

  get connections(): number {
    return this.#connections.size;
  }

  listen({ host, port }: ListenAddress): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ port, ...(host === undefined ? {} : { host }), backlog: BACKLOG }, () => {
        this.#server.removeListener("error", reject);
        const bound = this.#server.address() as AddressInfo;
        // Kept: a guard asks with every request, and the address is a system call.
        this.#isBoundToLoopback = isLoopback(bound.address);
        resolve(bound);
      });
    });
  }

  /** Accepts no more connections, and resolves when the last request is answered. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
      this.#connections.closeSilent();
    });
  }

  closeAllConnections(): void {
    this.#server.closeAllConnections();
  }

  #serve(request: IncomingMessage, response: ServerResponse): void {
    const context = this.#context;
    const exchange = new NodeExchange(request, response, this.#isBoundToLoopback);
    if (context.held.isDraining) exchange.setHeader("Connection", "close");
    void answering(exchange, context, () => {
      const headers = { Connection: "close" } as const;
      const refusal = this.#connections.refusalOf(request.socket);
      if (refusal !== undefined) return answerTooBusy(exchange, refusal, headers);
      if (exchange.hasOneHost) return SERVICE_ROUTER.serve(exchange, context);
      return exchange.problem("BAD_REQUEST", "Expected exactly one `Host` header", { headers });
    });
  }

  /** Also answers invalid HTTP, if the connection can still carry an answer (PIPE5); then closes the connection. */
  #refuse(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    this.#pipelines.refuse(socket, () => this.#answerInvalid(error, socket));
  }

  #answerInvalid(error: NodeJS.ErrnoException, socket: Socket): void {
    const { log, telemetry } = this.#context;
    const requestId = newRequestId();
    telemetry.instruments.count("badRequests");
    const unlogged = this.#throttle.take();
    if (unlogged !== undefined)
      log.info("a client sent invalid HTTP", { requestId, peer: socket.remoteAddress, reason: error.code, unlogged });
    socket.end(parserAnswer(error, requestId));
    destroyLater(socket);
  }
}

const STATUS_OF: { readonly [code: string]: string } = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

function parserAnswer({ code = "" }: NodeJS.ErrnoException, requestId: string): string {
  const status = STATUS_OF[code] ?? "400 Bad Request";
  const body = problemBody("BAD_REQUEST", Number(status.slice(0, 3)));
  const head = [
    `HTTP/1.1 ${status}`,
    "Connection: close",
    `Content-Type: ${PROBLEM_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "X-Content-Type-Options: nosniff",
    `X-Request-Id: ${requestId}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/**
 * The largest number of refused connections at a time. Beyond it, connections are closed at once: each costs a file
 * descriptor.
 */
const MOST_LINGERING = 256;

/**
 * The open connections.
 *
 * CONN1  Connections beyond the limits are not served. The first request is answered 503, and the connection is closed
 *     at most `LINGER_MS` after it arrived, whether its caller sends, reads, or keeps its half open.
 * CONN2  Every connection leaves the counts once, when it closes.
 *
 * Connections within the limits are not checked again. The HTTP server decides how long they may stay silent.
 */
class Connections {
  readonly #limits: () => ServiceLimits;
  readonly #refusals: Refusals;
  /** The number of connections that the system allows. */
  readonly #allowed = connectionsAllowed();
  readonly #perAddress = new Map<string, number>();
  readonly #refused = new WeakMap<Socket, LimitName>();
  readonly #served = new Set<Socket>();
  #lingering = 0;

  constructor(limits: () => ServiceLimits, refusals: Refusals) {
    this.#limits = limits;
    this.#refusals = refusals;
  }

  /** The number of all connections, including those that are being refused. */
  get size(): number {
    return this.#served.size + this.#lingering;
  }

  watch(server: Server): void {
    server.on("connection", (socket) => this.#take(socket));
  }

  /** Why this connection is not served; `undefined` if it is. */
  refusalOf(socket: Socket): LimitName | undefined {
    return this.#refused.get(socket);
  }

  /**
   * Closes connections that have sent nothing. The HTTP server does not treat them as idle, because it waits for their
   * first request.
   */
  closeSilent(): void {
    for (const socket of this.#served) if (socket.bytesRead === 0) socket.destroy();
  }

  get #most(): number {
    return Math.min(this.#limits().connections, this.#allowed);
  }

  #take(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    const limit = this.#brokenBy(address);
    if (limit !== undefined) {
      this.#refuse(socket, limit);
      return;
    }
    this.#served.add(socket);
    countIn(this.#perAddress, address, 1);
    socket.once("close", () => {
      this.#served.delete(socket);
      countIn(this.#perAddress, address, -1);
    });
  }

  #brokenBy(address: string): LimitName | undefined {
    const { connectionsPerAddress } = this.#limits();
    if (this.#served.size >= this.#most) return "connections";
    return (this.#perAddress.get(address) ?? 0) >= connectionsPerAddress ? "connections_per_address" : undefined;
  }

  #refuse(socket: Socket, limit: LimitName): void {
    const most = limit === "connections" ? this.#most : this.#limits().connectionsPerAddress;
    this.#refusals.count(limit, most);
    if (this.#lingering >= Math.min(MOST_LINGERING, this.#most / 4)) {
      socket.destroy();
      return;
    }
    this.#refused.set(socket, limit);
    this.#lingering++;
    destroyLater(socket);
    socket.once("close", () => this.#lingering--);
  }
}

/** If the caller keeps its half open, an ended connection stays for ever unless it is destroyed. */
function destroyLater(socket: Socket): void {
  const cut = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once("close", () => clearTimeout(cut));
}
