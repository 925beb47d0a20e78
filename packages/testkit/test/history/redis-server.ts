import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

export const hasRedis = spawnSync("redis-server", ["--version"]).status === 0;

/** Debian's `redis-server` on a socket in a folder of its own, with no data on disk. */
export class RedisServer {
  readonly #folder = mkdtempSync(join(tmpdir(), "slotkeeper-redis-"));
  readonly #process: ChildProcess;

  constructor() {
    const options = ["--port", "0", "--unixsocket", this.#path, "--save", "", "--appendonly", "no"];
    this.#process = spawn("redis-server", options, { cwd: this.#folder, stdio: "ignore" });
  }

  get #path(): string {
    return join(this.#folder, "redis.sock");
  }

  async connect(): Promise<RedisConnection> {
    for (;;) {
      const socket = createConnection(this.#path);
      const isOpen = await new Promise<boolean>((resolve) => {
        socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
      });
      if (isOpen) return new RedisConnection(socket);
      if (this.#process.exitCode !== null) throw new Error(`redis-server ended with ${this.#process.exitCode}`);
      await pause(20);
    }
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.kill();
    await ended;
    rmSync(this.#folder, { recursive: true });
  }
}

/** The few commands that `redis-semaphore` sends. Every reply is one line: a number, a text or an error. */
export class RedisConnection {
  readonly #socket: Socket;
  readonly #waiting: ((line: string) => void)[] = [];
  #text = "";

  constructor(socket: Socket) {
    this.#socket = socket.setEncoding("utf8").on("data", (chunk: string) => this.#read(chunk));
  }

  evalsha = (...args: readonly (string | number)[]): Promise<number> => this.#send("EVALSHA", args);
  eval = (...args: readonly (string | number)[]): Promise<number> => this.#send("EVAL", args);
  zrem = (...args: readonly (string | number)[]): Promise<number> => this.#send("ZREM", args);

  close(): void {
    this.#socket.destroy();
  }

  async #send(name: string, args: readonly (string | number)[]): Promise<number> {
    const parts = [name, ...args].map(String);
    const bulks = parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`).join("");
    const reply = await new Promise<string>((resolve) => {
      this.#waiting.push(resolve);
      this.#socket.write(`*${parts.length}\r\n${bulks}`);
    });
    if (reply.startsWith("-")) throw new Error(reply.slice(1));
    return Number(reply.slice(1));
  }

  #read(chunk: string): void {
    this.#text += chunk;
    for (let end = this.#text.indexOf("\r\n"); end >= 0; end = this.#text.indexOf("\r\n")) {
      this.#waiting.shift()?.(this.#text.slice(0, end));
      this.#text = this.#text.slice(end + 2);
    }
  }
}
