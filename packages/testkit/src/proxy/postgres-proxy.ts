import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/**
 * Gets a message of the server: its type and all of its bytes. If it returns `undefined`, the message does not arrive.
 */
export type AnswerFilter = (type: string, message: Buffer) => Buffer | undefined;

/**
 * A proxy between clients and a PostgreSQL server that passes each message of the server through a filter, to simulate
 * poolers or servers of other versions. Without encryption.
 */
export class PostgresProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #target: URL;

  static async start(dsn: string, filter: AnswerFilter): Promise<PostgresProxy> {
    const proxy = new PostgresProxy(new URL(dsn), filter);
    await new Promise<void>((resolve) => void proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  private constructor(target: URL, filter: AnswerFilter) {
    this.#target = target;
    this.#server = createServer((client) => {
      const server = connect(Number(target.port || 5432), target.hostname);
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on("error", () => {}).on("close", () => [client, server].map((one) => one.destroy()));
      }
      client.pipe(server);
      let pending: Buffer = Buffer.alloc(0);
      server.on("data", (bytes: Buffer) => {
        pending = Buffer.concat([pending, bytes]);
        for (let size = sizeOf(pending); pending.length >= size; size = sizeOf(pending)) {
          const message = pending.subarray(0, size);
          pending = pending.subarray(size);
          const answer = filter(String.fromCharCode(message[0] ?? 0), message);
          if (answer !== undefined) client.write(answer);
        }
      });
    });
  }

  /** The given address, through this proxy. */
  get dsn(): string {
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    return url.href;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** A message is a type, then a length that includes itself. `Infinity` if the length has not arrived yet. */
function sizeOf(bytes: Buffer): number {
  return bytes.length < 5 ? Number.POSITIVE_INFINITY : 1 + bytes.readUInt32BE(1);
}

/**
 * A pooler in transaction mode: LISTEN is answered by a session that the next client gets, and no notification arrives.
 */
export const withoutNotifications: AnswerFilter = (type, message) => (type === "A" ? undefined : message);
