import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * A TCP proxy between a client and a server that simulates failures of networks. `silence` holds back what the server
 * sends: connections look open and nothing arrives, as on a half-open connection or while the server is paused.
 * `blackHole` loses bytes in both directions, like a router that has forgotten a connection.
 */
export class TcpProxy {
  readonly #target: URL;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #server: Server | undefined;
  #port = 0;
  #isSilent = false;
  #losesNew = false;

  /** Refuses connections until `accept`. */
  constructor(target: string) {
    this.#target = new URL(target);
  }

  static async to(target: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await proxy.accept();
    return proxy;
  }

  /** The address of the target, through this proxy. */
  get url(): string {
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${this.#port}`;
    return url.href;
  }

  /** Listens, on the same port as before. */
  async accept(): Promise<void> {
    const server = createServer((socket) => this.#join(socket));
    await new Promise<void>((resolve) => server.listen(this.#port, "127.0.0.1", resolve));
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Cuts every connection, and refuses new ones until `accept`. */
  async refuse(): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    this.#pairs.clear();
    const server = this.#server;
    this.#server = undefined;
    await new Promise<void>((resolve) => (server === undefined ? resolve() : server.close(() => resolve())));
  }

  silence(): void {
    this.#isSilent = true;
    for (const [socket, upstream] of this.#pairs) upstream.unpipe(socket).pause();
  }

  /** Delivers what was held back. */
  resume(): void {
    this.#isSilent = false;
    for (const [socket, upstream] of this.#pairs) upstream.pipe(socket);
  }

  /**
   * Open connections are lost without notice on either side. New ones work, or with `isForNew` are lost too, until
   * `heal`.
   */
  blackHole({ isForNew }: { readonly isForNew: boolean }): void {
    this.#losesNew = isForNew;
    for (const pair of this.#pairs) lose(pair);
  }

  /** New connections work again. The server sees the end of the lost ones; their clients do not. */
  heal(): void {
    this.#losesNew = false;
    for (const [socket, upstream] of this.#pairs) if (lost.has(socket)) upstream.destroy();
  }

  close(): Promise<void> {
    return this.refuse();
  }

  #join(socket: Socket): void {
    const upstream = connect(Number(this.#target.port), this.#target.hostname);
    const pair = [socket, upstream] as const;
    this.#pairs.add(pair);
    for (const one of pair) {
      one.setNoDelay(true).on("error", () => {});
      one.on("close", () => {
        if (!lost.has(one)) for (const other of pair) other.destroy();
        if (pair.every(({ destroyed }) => destroyed)) this.#pairs.delete(pair);
      });
    }
    if (this.#losesNew) {
      lose(pair);
      return;
    }
    socket.pipe(upstream);
    if (!this.#isSilent) upstream.pipe(socket);
  }
}

const lost = new WeakSet<Socket>();

/** Continues to read, so that neither side sees a full buffer, and drops what it reads. */
function lose(pair: readonly [Socket, Socket]): void {
  for (const socket of pair) {
    lost.add(socket);
    socket.unpipe().resume();
  }
}
