/**
 * The process that holds or wants slots, watched until it has ended.
 *
 * HOLD1  A holder lives while its socket answers, or its process lives. The socket answers until the last process that
 *     inherited it has ended. The process is recognised by its number and the time at which it started.
 * HOLD2  The number is used only if it is valid here: in another pid namespace it names another process. Then an open
 *     call of the holder counts instead.
 * HOLD3  The end is reported once.
 */
import { connect } from "node:net";
import { basename, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { isAlive, type ProcessIdentity, startOf } from "../store/journal/process-identity.ts";

/** What a call says about its process. */
export interface HolderCall {
  readonly protocol: number;
  readonly id: string;
  /** The path of its listening socket. */
  readonly socket: string;
  readonly pid: number;
  /** The pid namespace in which `pid` is valid. */
  readonly space: string;
  /** For people. */
  readonly command: string;
}

/** Where the sockets of holders are: in the folder of the keeper, under names of their own. */
export interface HolderPlace {
  readonly folder: string;
  readonly isOwnFile: (name: string) => boolean;
}

/**
 * Checks what a call or the file of a lease says about a holder; `undefined` if it is not as expected. Its socket must be
 * in the folder of the keeper: the keeper removes it at the end. Only the name counts, because a container may have the
 * folder at another place.
 */
export function checkedHolder<H extends HolderCall>(given: H, { folder, isOwnFile }: HolderPlace): H | undefined {
  const { protocol, id, socket, pid, space, command } = Object(given) as { readonly [field: string]: unknown };
  const isSound =
    typeof protocol === "number" &&
    typeof id === "string" &&
    /^[\da-z]+$/.test(id) &&
    typeof socket === "string" &&
    isOwnFile(basename(socket)) &&
    Number.isSafeInteger(pid) &&
    typeof space === "string" &&
    typeof command === "string";
  return isSound ? { ...given, socket: join(folder, basename(socket)) } : undefined;
}

/** The same, with the time at which the process started; empty if the number is not valid here. */
export interface HolderAbout extends HolderCall {
  readonly startedAt: string;
}

/** How often a process is looked up that has closed its socket. No event reports its end. */
const LOOK_MS = 20;
/** How long a holder whose process cannot be looked up may take to come to a new keeper. */
const RETURN_MS = 1_000;
/** After a connection that the system refused for a lack of room. */
const AGAIN_MS = 500;

export class Holder {
  readonly about: HolderAbout;
  readonly #self: ProcessIdentity;
  #hasSocket = true;
  #calls = 0;
  #onQuiet: (() => void) | undefined;

  constructor(about: HolderAbout, self: ProcessIdentity) {
    this.about = about;
    this.#self = self;
  }

  static async of(call: HolderCall, self: ProcessIdentity): Promise<Holder> {
    const isHere = self.place.endsWith(` ${call.space}`) || (call.space === "" && !self.place.includes(" "));
    return new Holder({ ...call, startedAt: isHere ? ((await startOf(call.pid)) ?? "ended") : "" }, self);
  }

  /** Whether processes that its command left behind keep the socket, after the command itself has ended. */
  async isLeftBehind(): Promise<boolean> {
    return this.#hasSocket && (await this.#isProcessAlive()) === false;
  }

  /** Counts a call that stays open. */
  opened(): void {
    this.#calls++;
  }

  closed(): void {
    this.#calls--;
    if (this.#calls === 0) this.#onQuiet?.();
  }

  /** Resolves when it has ended (HOLD1). */
  async ended(): Promise<void> {
    while (await this.#socketClosed()) {
      // It may have been accepted by a process that ended, while another one still has the socket.
    }
    this.#hasSocket = false;
    // A process closes its socket a moment before it counts as ended.
    for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, LOOK_MS)) {
      const isProcessAlive = await this.#isProcessAlive();
      if (isProcessAlive === false) return;
      if (isProcessAlive === undefined) break;
      await pause(waitMs);
    }
    // Its `exec` opens a call again at the next keeper.
    await pause(RETURN_MS);
    while (this.#calls > 0) {
      await new Promise<void>((resolve) => {
        this.#onQuiet = resolve;
      });
    }
  }

  /** Waits until the connection to the socket ends. Returns false if there was none to be had. */
  #socketClosed(): Promise<boolean> {
    return new Promise((resolve) => {
      let isConnected = false;
      const connection = connect(this.about.socket, () => {
        isConnected = true;
      });
      connection.on("error", ({ code }: NodeJS.ErrnoException) => {
        if (code === "EAGAIN") setTimeout(() => resolve(true), AGAIN_MS);
        else if (!isConnected) resolve(false);
      });
      connection.on("close", () => {
        if (isConnected) resolve(true);
      });
      connection.resume();
    });
  }

  /** Undefined: the number is not valid here. */
  #isProcessAlive(): Promise<boolean | undefined> {
    const { pid, startedAt } = this.about;
    if (startedAt === "") return Promise.resolve(undefined);
    return isAlive({ ...this.#self, pid, startedAt }, this.#self);
  }
}
