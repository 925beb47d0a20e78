import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { ServiceLimits } from "../config/settings.ts";
import type { LimitName, Refusals } from "./refusals.ts";

export interface ConnectionsInit {
  readonly limits: () => ServiceLimits;
  /** What the system allows. */
  readonly allowed: number;
  readonly refusals: Refusals;
}

/** How long a refused caller has for its request, so that it gets to read why. */
const LINGER_MS = 500;
/** Refused connections that are waited for at a time; beyond, they are cut at once: each costs a file descriptor. */
const MOST_LINGERING = 256;

/**
 * The open connections.
 *
 * CONN1 beyond the limits none is served: its first request is answered 503, and it is cut `LINGER_MS` after it came at the
 * latest, whether its caller speaks, reads, or keeps its half open. CONN2 every connection leaves the counts when it closes,
 * once. Those within the limits are not looked at again: how long they may stay silent is the HTTP server's to say.
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

  /** All of them, those that are being refused included. */
  get size(): number {
    return this.#served.size + this.#lingering;
  }

  watch(server: Server): void {
    server.on("connection", (socket) => this.#take(socket));
  }

  /** Why this connection is not served; undefined: it is. */
  refusalOf(socket: Socket): LimitName | undefined {
    return this.#refused.get(socket);
  }

  /** Cuts those that have sent nothing. For the HTTP server they are not idle: it waits for their first request. */
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

/** An ended connection whose caller keeps its half open stays for ever, unless it is destroyed. */
export function destroyIn(socket: Socket, ms: number): NodeJS.Timeout {
  return setTimeout(() => socket.destroy(), ms).unref();
}
