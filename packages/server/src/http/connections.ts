import { readFileSync } from "node:fs";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { ServiceLimits } from "../config/settings.ts";
import type { LimitName, Refusals } from "./held-calls.ts";

export interface ConnectionsInit {
  readonly limits: () => ServiceLimits;
  /** The number of connections that the system allows. */
  readonly allowed: number;
  readonly refusals: Refusals;
}

/** How long a refused caller has to send its request, so that it can read the reason. */
const LINGER_MS = 500;
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
export class Connections {
  readonly #init: ConnectionsInit;
  readonly #perAddress = new Map<string, number>();
  readonly #refused = new WeakMap<Socket, LimitName>();
  readonly #served = new Set<Socket>();
  #lingering = 0;

  constructor(init: ConnectionsInit) {
    this.#init = init;
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
    return Math.min(this.#init.limits().connections, this.#init.allowed);
  }

  #take(socket: Socket): void {
    const address = socket.remoteAddress ?? "";
    const limit = this.#brokenBy(address);
    if (limit !== undefined) {
      this.#refuse(socket, limit);
      return;
    }
    this.#served.add(socket);
    this.#perAddress.set(address, (this.#perAddress.get(address) ?? 0) + 1);
    socket.once("close", () => this.#left(socket, address));
  }

  #brokenBy(address: string): LimitName | undefined {
    const { connectionsPerAddress } = this.#init.limits();
    if (this.#served.size >= this.#most) return "connections";
    return (this.#perAddress.get(address) ?? 0) >= connectionsPerAddress ? "connections_per_address" : undefined;
  }

  #refuse(socket: Socket, limit: LimitName): void {
    const most = limit === "connections" ? this.#most : this.#init.limits().connectionsPerAddress;
    this.#init.refusals.count(limit, most);
    if (this.#lingering >= Math.min(MOST_LINGERING, this.#most / 4)) {
      socket.destroy();
      return;
    }
    this.#refused.set(socket, limit);
    this.#lingering++;
    const cut = destroyIn(socket, LINGER_MS);
    socket.once("close", () => {
      clearTimeout(cut);
      this.#lingering--;
    });
  }

  #left(socket: Socket, address: string): void {
    this.#served.delete(socket);
    const left = (this.#perAddress.get(address) ?? 1) - 1;
    if (left === 0) this.#perAddress.delete(address);
    else this.#perAddress.set(address, left);
  }
}

/** If the caller keeps its half open, an ended connection stays for ever unless it is destroyed. */
export function destroyIn(socket: Socket, ms: number): NodeJS.Timeout {
  return setTimeout(() => socket.destroy(), ms).unref();
}

/**
 * Reserved for everything except connections of callers: files, the database, the control plane, refused connections.
 */
const RESERVED_SHARE = 0.5;
const MOST_RESERVED = 512;

/**
 * The number of connections that the system allows this process; `Infinity` if the system does not report it. Beyond
 * it, the system would not refuse new connections but leave them waiting without a trace.
 */
export function connectionsAllowed(): number {
  const files = Number(/^Max open files +(\d+)/m.exec(limitsText())?.[1] ?? Number.POSITIVE_INFINITY);
  return files - Math.min(MOST_RESERVED, Math.ceil(files * RESERVED_SHARE));
}

function limitsText(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    return "";
  }
}

/** Whether an address of a socket can only be reached from this machine. */
export function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/, "");
  return plain === "::1" || plain.startsWith("127.");
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
export const CROWDED = "crowded";

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
