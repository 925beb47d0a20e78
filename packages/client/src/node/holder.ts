/**
 * How the kernel keeps a lease: each holder has a listening socket of its own. The keeper connects to it and gets a
 * hang-up when the last process that has the socket ends, even if it was killed.
 *
 * HOLDER1  The file appears with a socket that listens (by a link), so a keeper that finds it can connect.
 */
import { linkSync, readlinkSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";
import { KeeperError } from "./keeper-error.ts";
import { PROTOCOL } from "./keeper-link.ts";
import { FILE_SUFFIX } from "./socket-folder.ts";

/** The header with which a call says which process will hold the slot. */
const HOLDER_HEADER = "x-slotkeeper-holder";
/** A command line may be longer than a header. */
const LONGEST_COMMAND = 200;

/** A process that wants to hold slots, as the keeper recognises it. */
export class Holder {
  /** Not from `node:crypto`, which takes a millisecond more to load. */
  readonly id = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  /** The path of its socket. */
  readonly path: string;
  readonly #server: Server;
  readonly #accepted = new Set<Socket>();

  constructor(socket: string) {
    this.path = `${socket}${FILE_SUFFIX.holder}${this.id}`;
    this.#server = createServer((connection) => {
      this.#accepted.add(connection.unref());
      connection.on("error", () => {}).on("close", () => this.#accepted.delete(connection));
    });
    this.#server.on("error", () => {});
    // Binds and listens before it returns.
    this.#server.listen(`${this.path}.new`).unref();
    try {
      linkSync(`${this.path}.new`, this.path);
    } catch (error) {
      const why = "the disk is full, or it is read-only";
      throw new KeeperError({ reason: `Cannot create a socket in the folder ${dirname(socket)}: ${why}` }, error);
    }
  }

  /** The descriptor of the socket, for a child process that inherits it. */
  get descriptor(): number {
    return (this.#server as unknown as { readonly _handle: { readonly fd: number } })._handle.fd;
  }

  /** Leaves the socket to the child that inherited it. Its file stays. */
  handOver(): void {
    this.#server.close();
  }

  /** Ends the holder, and with it all its leases. */
  close(): void {
    rmSync(this.path, { force: true });
    this.#server.close();
    for (const connection of this.#accepted) connection.destroy();
  }

  /** The header of its calls. `pid` is the process that uses the slot, `command` what a person should see. */
  header({ pid, command }: { readonly pid: number; readonly command: string }): { [name: string]: string } {
    const shown = command.slice(0, LONGEST_COMMAND);
    const about = { protocol: PROTOCOL, id: this.id, socket: this.path, pid, space: pidSpace(), command: shown };
    // A header carries ASCII.
    const text = JSON.stringify(about).replaceAll(
      // Without the flag `u`, each half of a pair is escaped by itself, as JSON wants it.
      /[^ -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
    return { [HOLDER_HEADER]: text };
  }
}

/** Where the process id is valid. A container has its own numbers. */
function pidSpace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}
