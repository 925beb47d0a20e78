import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

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
