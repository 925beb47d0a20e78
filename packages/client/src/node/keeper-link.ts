/**
 * Calls to the keeper of this machine: HTTP over its socket.
 *
 * LINK1  A call that did not reach a keeper, or whose keeper died before it answered, is repeated at the next keeper,
 *     which is started if there is none. The keeper recognises a repeated call by the holder and the request id.
 */
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { likelyKeeper } from "./generation.ts";
import { KeeperError } from "./keeper-error.ts";

/** Raised with every change that an older keeper or command would misunderstand. */
export const PROTOCOL = 2;

/** The keeper has little to do: a small heap is enough for it, and the compilers would only take memory. */
export const NODE_OPTIONS = ["--max-semi-space-size=1", "--optimize-for-size", "--no-opt", "--no-sparkplug"] as const;

/** The command line of `slotkeeper`, without arguments. */
export type KeeperCommand = readonly [file: string, ...args: string[]];

/** A keeper that dies again and again must not keep its callers busy for ever. */
const MOST_TRIES = 50;
const RETRY_MS = 20;
/** What the system reports if no process listens, or if the process has died. */
const DEAD: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOENT", "ECONNRESET", "EPIPE", "EAGAIN"]);

/** One call. */
export interface KeeperCall {
  readonly path: string;
  readonly method?: string;
  readonly body?: string | undefined;
  readonly headers?: { readonly [name: string]: string };
  readonly signal?: AbortSignal | undefined;
}

/** The answer of the keeper, whatever its status is. */
export interface KeeperAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  readonly text: string;
}

/** The way to the keeper of one socket. */
export class KeeperLink {
  readonly #socket: string;
  readonly #command: () => KeeperCommand;
  readonly #agent = new Agent({ keepAlive: true });
  #path: string | undefined;

  constructor(socket: string, command: () => KeeperCommand) {
    this.#socket = socket;
    this.#command = command;
  }

  /** Rejects with the reason of the signal, or a `KeeperError`. */
  async call(call: KeeperCall): Promise<KeeperAnswer> {
    return this.#repeated(call, async (answer) => {
      const text = await textOf(answer);
      return { status: answer.statusCode ?? 0, headers: answer.headers, text };
    });
  }

  /** Resolves with the beginning of the answer, which the keeper does not end. `onEnd` runs when the connection ends. */
  async open(call: KeeperCall, onEnd: () => void): Promise<KeeperAnswer & { readonly close: () => void }> {
    return this.#repeated(call, async (answer, sent) => {
      const { statusCode: status = 0, headers } = answer;
      if (status !== 200) return { status, headers, text: await textOf(answer), close: () => {} };
      const text = await firstLine(answer);
      answer.on("close", onEnd).on("error", () => {});
      answer.resume();
      const close = () => {
        answer.off("close", onEnd);
        sent.destroy();
      };
      return { status, headers, text, close };
    });
  }

  async #repeated<T>(call: KeeperCall, read: (answer: IncomingMessage, sent: ClientRequest) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      call.signal?.throwIfAborted();
      try {
        // The first call does not look whether the keeper is alive: it shows.
        this.#path ??= (tries === 1 ? likelyKeeper(this.#socket) : undefined) ?? (await this.#findOrStart());
        const { answer, sent } = await this.#send(this.#path, call);
        return await read(answer, sent);
      } catch (error) {
        if (call.signal?.aborted === true) throw call.signal.reason;
        if (error instanceof KeeperError) throw error;
        const { code = "", message } = error as NodeJS.ErrnoException;
        if (!DEAD.has(code) || tries === MOST_TRIES) throw new KeeperError({ reason: `The keeper failed: ${message}` });
        this.#path = undefined;
        await new Promise((resolve) => setTimeout(resolve, Math.min(tries - 1, 10) * RETRY_MS));
      }
    }
  }

  async #findOrStart(): Promise<string> {
    const { findOrStartKeeper } = await import("./start-keeper.ts");
    return findOrStartKeeper(this.#socket, this.#command);
  }

  #send(socketPath: string, call: KeeperCall): Promise<{ answer: IncomingMessage; sent: ClientRequest }> {
    const { path, method = "GET", body, headers, signal } = call;
    return new Promise((resolve, reject) => {
      const sent = request({
        socketPath,
        // Without it, Node compares "localhost" with a pattern for addresses that takes 4 ms to compile.
        host: "127.0.0.1",
        path,
        method,
        agent: this.#agent,
        headers: { ...headers },
        ...(signal && { signal }),
      });
      sent.on("response", (answer) => resolve({ answer, sent }));
      sent.on("error", reject);
      sent.end(body);
    });
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

function firstLine(answer: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const take = (chunk: Buffer) => {
      text += chunk.toString();
      if (!text.includes("\n")) return;
      answer.off("data", take);
      resolve(text);
    };
    answer.on("data", take);
    answer.on("error", reject);
  });
}
