/**
 * Records which work runs, outside the processes that are killed. A process reports the start of its work after it got
 * its slot, and the end before it gives the slot back; it waits until the end is recorded. So the recorded times are
 * inside the times in which the limiter must count the work, and every excess is the limiter's.
 *
 * A line is `{"start":1,"user":…}`, `{"end":1}` or `{"failure":…}`; the end is answered with the number. A process that is killed loses
 * its connection, and that ends its work.
 */
import { createServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import type { Job } from "./job.ts";

export interface Run extends Job {
  readonly cost: number;
  readonly startedAt: number;
  endedAt: number;
  wasKilled: boolean;
}

type Line =
  | { readonly end: number }
  | { readonly failure: string }
  | ({ readonly start: number; readonly cost: number } & Job);

export class Recorder {
  readonly runs: Run[] = [];
  /** Why the limiter failed requests. */
  readonly failures: string[] = [];
  readonly #server: Server;
  #connected = 0;

  static async listen(path: string): Promise<Recorder> {
    const recorder = new Recorder();
    await new Promise<void>((resolve) => void recorder.#server.listen(path, resolve));
    return recorder;
  }

  private constructor() {
    this.#server = createServer((socket) => this.#listenTo(socket));
  }

  /** How much work runs now. */
  get running(): number {
    return this.runs.filter(({ endedAt }) => endedAt === Number.POSITIVE_INFINITY).length;
  }

  /** Resolves when this many processes are connected. */
  async connected(processes: number): Promise<void> {
    while (this.#connected < processes) await pause(50);
  }

  close(): void {
    this.#server.close();
  }

  #listenTo(socket: Socket): void {
    const open = new Map<number, Run>();
    this.#connected++;
    const lines = createInterface({ input: socket });
    // A process that is killed may reset its connection. What counts is that it is closed.
    lines.on("error", () => {});
    lines.on("line", (text) => {
      const line = JSON.parse(text) as Line;
      if ("start" in line) {
        const { start, user, tenant, estimate, cost } = line;
        const run = { user, tenant, estimate, cost, startedAt: performance.now(), endedAt: Infinity, wasKilled: false };
        open.set(start, run);
        this.runs.push(run);
      } else if ("failure" in line) this.failures.push(line.failure);
      else {
        end(open, line.end);
        socket.write(`${line.end}\n`);
      }
    });
    socket.on("close", () => {
      this.#connected--;
      for (const [id, run] of open) {
        run.wasKilled = true;
        end(open, id);
      }
    });
  }
}

function end(open: Map<number, Run>, id: number): void {
  const run = open.get(id);
  if (run !== undefined) run.endedAt = performance.now();
  open.delete(id);
}
