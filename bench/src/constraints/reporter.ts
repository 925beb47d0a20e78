/** The side of the recorder in a process that works. */
import { connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Job } from "./job.ts";

export class Reporter {
  readonly #socket: Socket;
  readonly #ends = new Map<number, () => void>();
  #next = 0;

  static async open(path: string): Promise<Reporter> {
    const socket = connect(path);
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    // Without its recorder, a process has nothing to do.
    socket.on("close", () => process.exit(0));
    return new Reporter(socket);
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    createInterface({ input: socket }).on("line", (line) => {
      this.#ends.get(Number(line))?.();
      this.#ends.delete(Number(line));
    });
  }

  failed(error: Error): void {
    this.#socket.write(`${JSON.stringify({ failure: error.message })}\n`);
  }

  /** Returns the function that reports the end, and resolves when it is recorded. */
  start(job: Job, cost: number): () => Promise<void> {
    const id = this.#next++;
    this.#socket.write(`${JSON.stringify({ start: id, ...job, cost })}\n`);
    return () =>
      new Promise((resolve) => {
        this.#ends.set(id, resolve);
        this.#socket.write(`${JSON.stringify({ end: id })}\n`);
      });
  }
}
