import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** An HTTP server on a free port of the loopback that can stop and start again at the same address. */
export class LoopbackServer {
  readonly #listener: RequestListener;
  #server: Server | undefined;
  #port = 0;

  constructor(listener: RequestListener) {
    this.#listener = listener;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens, on the same port as before. */
  async accept(): Promise<void> {
    const server = createServer(this.#listener);
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Refuses connections, and ends the open ones, until `accept`. */
  async refuse(): Promise<void> {
    if (this.#server?.listening !== true) return;
    const closed = new Promise((resolve) => this.#server?.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }
}

/** Reads a whole body. */
export async function textOf(stream: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
