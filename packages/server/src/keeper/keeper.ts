/**
 * The keeper of the slots of one machine: the engine of the service on a Unix socket, for the processes of one user.
 *
 * KEEP1  It answers only after `claim` has confirmed that no other keeper serves, and all leases of the earlier keeper
 *     are in its book.
 * KEEP2  A lease is written to a file before it is answered (`kept-leases.ts`), and lives as long as its holder
 *     (`holder.ts`). It never ends by time.
 *     A slot that its holder does not confirm in time is given to the next one (KEPT1).
 * KEEP3  It ends when no process has held or waited for `idleMs`, and leaves no file. A call that arrives at that moment
 *     is cut off, and its client repeats it at the next keeper. It also ends if its own files were removed.
 */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { realClock } from "slotkeeper";
import { plainName } from "../queue/names.ts";
import { thisProcess } from "../store/journal/process-identity.ts";
import { VERSION } from "../version.ts";
import { CALLS, json, problem } from "./calls.ts";
import { checkedHolder, type HolderCall } from "./holder.ts";
import { KEEPER_QUEUE, KeeperParts } from "./keeper-parts.ts";
import { localNames } from "./view.ts";
import type { WholeService } from "./whole-service.ts";

/** What a keeper needs: where it listens, and what decides whether it serves. */
export interface KeeperInit {
  /** The path on which it listens. */
  readonly path: string;
  /** What the paths of the files of leases begin with. */
  readonly leasePrefix: string;
  /** Whether a file beside the socket is one of ours. */
  readonly isOwnFile: (name: string) => boolean;
  /** The file that its log goes to. */
  readonly logFile: string | undefined;
  readonly protocol: number;
  /** Undefined: it stays. */
  readonly idleMs: number | undefined;
  /** Called when it listens. Returns whether it is the only keeper. */
  readonly claim: () => Promise<boolean>;
  readonly isListening: (path: string) => Promise<boolean>;
  readonly log: (line: string) => void;
  /** Called when it ends because it is idle, or when it lost the claim. Must end the process. */
  readonly end: () => void;
}

const CHECK_MS = 250;
const BASE = "http://localhost";
const MOST_BODY_BYTES = 64 * 1024;
/** Files that are younger may belong to a process that is about to use them. */
const LEFT_OVER_MS = 1_000;

/** A keeper that serves from its construction until it is idle. */
export class Keeper {
  readonly #init: KeeperInit;
  readonly #server: Server;
  readonly #ready: Promise<KeeperParts | undefined>;
  #whole: Promise<WholeService> | undefined;
  #requests = 0;
  #idleSince = Date.now();

  constructor(init: KeeperInit) {
    this.#init = init;
    this.#server = createServer({ requestTimeout: 0, keepAliveTimeout: 0 }, (request, response) => {
      void this.#serve(request, response);
    });
    this.#ready = this.#start();
  }

  /** Resolves to false if another keeper serves. Rejects if it cannot listen, or cannot read a lease. */
  async started(): Promise<boolean> {
    return (await this.#ready) !== undefined;
  }

  /** Removes our files that no process uses. The files of leases are removed with their leases. */
  async sweep(): Promise<void> {
    const { path, leasePrefix, isOwnFile, isListening, logFile } = this.#init;
    const folder = dirname(path);
    for (const name of readdirSync(folder).filter(isOwnFile)) {
      const file = join(folder, name);
      const stat = statSync(file, { throwIfNoEntry: false });
      if (stat === undefined || Date.now() - stat.mtimeMs < LEFT_OVER_MS || file === logFile) continue;
      const isUnused = stat.isSocket() ? !(await isListening(file)) : !file.startsWith(leasePrefix);
      if (isUnused) rmSync(file, { force: true });
    }
  }

  async #start(): Promise<KeeperParts | undefined> {
    const { path, leasePrefix, isOwnFile, claim, log, idleMs } = this.#init;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ path, backlog: 1024 }, resolve);
    });
    if (!(await claim())) return undefined;
    const self = await thisProcess();
    const parts = new KeeperParts(leasePrefix, self, isOwnFile);
    await parts.queue.start();
    log(`keeper ${VERSION}, process ${process.pid}, listens on ${path}; ${parts.restored} leases restored`);
    await this.sweep();
    if (idleMs !== undefined) setInterval(() => void this.#endIfIdle(parts, idleMs), CHECK_MS);
    return parts;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#requests++;
    response.on("close", () => this.#requests--);
    try {
      // Without an answer, the caller starts the next keeper, and learns why that is not possible.
      const parts = await this.#ready.catch(() => undefined);
      if (parts !== undefined) await this.#answer(parts, request, response);
    } catch (error) {
      this.#init.log(`a call failed: ${(error as Error).stack}`);
      if (!response.headersSent) problem(response, "INTERNAL");
    }
  }

  async #answer(parts: KeeperParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!URL.canParse(request.url ?? "/", BASE)) {
      problem(response, "BAD_REQUEST", "Expected a path");
      return;
    }
    const { pathname, searchParams } = new URL(request.url ?? "/", BASE);
    if (pathname === "/api/v0/local") {
      const name = searchParams.get("name");
      const names = await localNames(parts, realClock.now(), name === null ? undefined : plainName(name));
      json(response, 200, { protocol: this.#init.protocol, version: VERSION, pid: process.pid, names });
      return;
    }
    const call = CALLS[pathname];
    if (call === undefined) {
      (await this.#loadWhole(parts)).serve(request, response);
      return;
    }
    const { isOwnFile, protocol } = this.#init;
    const given = holderOf(request);
    const about = given?.protocol === protocol ? checkedHolder(given, { folder: parts.folder, isOwnFile }) : undefined;
    if (about === undefined) {
      problem(response, "BAD_REQUEST", this.#otherProtocol(given?.protocol));
      return;
    }
    const body = await bodyOf(request);
    await call({ request, response, holder: await parts.holders.of(about), body }, parts);
  }

  #otherProtocol(theirs: number | undefined): string {
    const { protocol } = this.#init;
    const which =
      theirs === undefined || theirs === protocol
        ? "Expected a call of slotkeeper"
        : `This command speaks protocol ${theirs}`;
    return `${which}, and the keeper (version ${VERSION}, process ${process.pid}) speaks ${protocol}. Stop it when its commands have ended: kill ${process.pid}`;
  }

  /** The routes for operators and the dashboard: loaded when one is asked for. */
  #loadWhole(parts: KeeperParts): Promise<WholeService> {
    this.#whole ??= import("./whole-service.ts").then(async ({ wholeService }) => {
      const whole = await wholeService({ queue: parts.queue, store: parts.store, fairQueue: KEEPER_QUEUE });
      parts.observe = whole.observe;
      return whole;
    });
    return this.#whole;
  }

  async #endIfIdle({ holders, queue }: KeeperParts, idleMs: number): Promise<void> {
    // Without its files, no process can find it.
    if (!existsSync(this.#init.path)) this.#init.end();
    if (holders.size > 0 || this.#requests > 0 || queue.overview().unsent > 0) this.#idleSince = Date.now();
    if (Date.now() - this.#idleSince < idleMs) return;
    await this.sweep();
    if (holders.size === 0 && this.#requests === 0) this.#init.end();
  }
}

function holderOf({ headers }: IncomingMessage): HolderCall | undefined {
  try {
    return JSON.parse(String(headers["x-slotkeeper-holder"])) as HolderCall;
  } catch {
    return undefined;
  }
}

async function bodyOf(request: IncomingMessage): Promise<object> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += (chunk as Buffer).length;
    if (bytes <= MOST_BODY_BYTES) chunks.push(chunk as Buffer);
  }
  try {
    return Object(JSON.parse(Buffer.concat(chunks).toString())) as object;
  } catch {
    return {};
  }
}
