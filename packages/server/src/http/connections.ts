import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { ServiceLimits } from "../config/settings.ts";
import type { LimitName, Refusals } from "./refusals.ts";

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
export function connectionsAllowed(limits = limitsText()): number {
  const files = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
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
