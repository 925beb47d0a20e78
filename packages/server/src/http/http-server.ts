import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { PROBLEMS } from "@slotkeeper/protocol";
import type { ListenAddress } from "../config/settings.ts";
import { dispatch } from "./dispatch.ts";
import type { ServiceContext } from "./service-context.ts";

/** Longer than the idle timeout of common balancers (60 s): the balancer closes first, and never writes into a closed connection. */
const KEEP_ALIVE_MS = 75_000;
/** For the request to arrive; how long it is held afterwards is not limited by it. */
const RECEIVE_MS = 30_000;
/** Ten thousand clients may come back at once after a restart. */
const BACKLOG = 4096;

export class HttpServer {
  readonly #server: Server;

  constructor(context: ServiceContext) {
    const options = { keepAliveTimeout: KEEP_ALIVE_MS, headersTimeout: RECEIVE_MS, requestTimeout: RECEIVE_MS };
    this.#server = createServer(options, (request, response) => void dispatch(request, response, context));
    this.#server.on("clientError", refuse);
  }

  listen({ host, port }: ListenAddress): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ port, ...(host === undefined ? {} : { host }), backlog: BACKLOG }, () => {
        this.#server.removeListener("error", reject);
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Takes no more connections, and resolves when the last request is answered. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeIdleConnections();
    });
  }

  closeAllConnections(): void {
    this.#server.closeAllConnections();
  }
}

/** What is not HTTP gets an answer all the same, where the connection can still carry one. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const isTooLarge = error.code === "HPE_HEADER_OVERFLOW";
  const isTooSlow = error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  const status = isTooLarge
    ? "431 Request Header Fields Too Large"
    : isTooSlow
      ? "408 Request Timeout"
      : "400 Bad Request";
  const problem = { ...PROBLEMS.BAD_REQUEST, status: Number(status.slice(0, 3)) };
  const body = JSON.stringify({ type: "urn:slotkeeper:problem:bad-request", ...problem, code: "BAD_REQUEST" });
  socket.end(
    `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Type: application/problem+json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}
