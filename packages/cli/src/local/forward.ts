import { randomBytes, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { runningKeeper } from "./running-keeper.ts";

/** An address of this machine that leads to the keeper, for programs that cannot use its socket, such as a browser. */
export interface Forward {
  readonly url: string;
  /** Needed for all data: other users of the machine can reach the address, too. */
  readonly token: string;
  readonly close: () => void;
}

/** Opens the address. It leads to the keeper that runs at the moment of each call. */
export async function forwardToKeeper(socket: string | undefined): Promise<Forward> {
  const token = randomBytes(18).toString("hex");
  const server = createServer((incoming, outgoing) => void forward(socket, token, incoming, outgoing));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}`, token, close };
}

/** The files of the dashboard. Everything else needs the key. */
const OPEN_PATHS = /^\/(?:assets\/[\w.-]+)?$/;

const BASE = "http://localhost";

async function forward(
  socket: string | undefined,
  token: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const { method, headers } = incoming;
  // As the keeper will read it: `/./api` and `http://x/api` are `/api`.
  const url = URL.canParse(incoming.url ?? "", BASE) ? new URL(incoming.url ?? "", BASE) : undefined;
  const isOpen = method === "GET" && OPEN_PATHS.test(url?.pathname ?? "");
  if (url === undefined || !(isOpen || isSame(headers.authorization ?? "", `Bearer ${token}`))) {
    outgoing.writeHead(404).end();
    return;
  }
  const socketPath = await runningKeeper(socket);
  if (socketPath === undefined) {
    outgoing.writeHead(503, { "Content-Type": "application/json" }).end(JSON.stringify({ title: "No keeper runs" }));
    return;
  }
  const path = `${url.pathname}${url.search}`;
  const sent = request({ socketPath, method, path, headers: { ...headers, authorization: "" } }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  sent.on("error", () => outgoing.destroy());
  outgoing.on("close", () => sent.destroy());
  incoming.pipe(sent);
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
