import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** The requests of one connection that wait for the one being served. */
interface Line {
  isServing: boolean;
  readonly waiting: [IncomingMessage, ServerResponse][];
}

/** A connection with this number of waiting requests is not read. */
const MOST_WAITING = 16;

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
 *
 * A connection that is not read does not notice that its caller has left until an answer is written.
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
    if (line.isServing) {
      line.waiting.push([request, response]);
      hold(socket, line);
    } else this.#start(line, request, response);
  };

  #newLine(socket: Socket): Line {
    const line: Line = { isServing: false, waiting: [] };
    this.#lines.set(socket, line);
    // Node resumes a socket for reasons of its own.
    socket.on("resume", () => hold(socket, line));
    return line;
  }

  #start(line: Line, request: IncomingMessage, response: ServerResponse): void {
    line.isServing = true;
    response.once("close", () => {
      if (line.waiting.length === 0) line.isServing = false;
      else setImmediate(() => this.#next(line, request.socket));
    });
    this.#serve(request, response);
  }

  #next(line: Line, socket: Socket): void {
    if (socket.destroyed) {
      line.waiting.length = 0;
      return;
    }
    const isHeld = line.waiting.length >= MOST_WAITING;
    const [request, response] = line.waiting.shift() as Line["waiting"][number];
    if (isHeld && line.waiting.length < MOST_WAITING) socket.resume();
    this.#start(line, request, response);
  }
}

function hold(socket: Socket, { waiting }: Line): void {
  if (waiting.length >= MOST_WAITING) socket.pause();
}
