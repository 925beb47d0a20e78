/**
 * A keep-alive HTTP/1.1 connection without a client library, because in these measurements the client must cost less
 * than any server. It supports only `Content-Length`, and one request at a time.
 */
import { connect, type Socket } from "node:net";

export interface RawReply {
  readonly status: number;
  readonly body: string;
}

interface Asked {
  readonly resolve: (reply: RawReply) => void;
  readonly reject: (error: Error) => void;
}

export class RawConnection {
  readonly #socket: Socket;
  readonly #host: string;
  #asked: Asked | undefined;
  #received: Buffer = Buffer.alloc(0);

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#host = host;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    socket.on("error", (error) => this.#fail(error));
    socket.on("close", () => this.#fail(new Error("the server closed the connection")));
  }

  static open(url: string): Promise<RawConnection> {
    const { hostname, port, host } = new URL(url);
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new RawConnection(socket, host));
      });
    });
  }

  post(path: string, message: object): Promise<RawReply> {
    const body = JSON.stringify(message);
    const length = Buffer.byteLength(body);
    const head = `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
    return new Promise((resolve, reject) => {
      if (this.#asked !== undefined) throw new Error("Expected one request at a time");
      if (this.#socket.destroyed) throw new Error("the connection is closed");
      this.#asked = { resolve, reject };
      this.#socket.write(head + body);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd === -1) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length === undefined) throw new Error(`Expected a Content-Length, got ${head}`);
    const end = headEnd + 4 + Number(length);
    if (this.#received.length < end) return;
    const reply = { status: Number(head.slice(9, 12)), body: this.#received.toString("utf8", headEnd + 4, end) };
    this.#received = this.#received.subarray(end);
    const asked = this.#asked;
    this.#asked = undefined;
    asked?.resolve(reply);
  }

  #fail(error: Error): void {
    this.#asked?.reject(error);
    this.#asked = undefined;
  }
}
