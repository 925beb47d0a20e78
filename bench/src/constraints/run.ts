/** Runs one subject: three processes, one of them killed every few seconds, and then all of them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { LEASE_MS, LIMITS } from "./job.ts";
import { type Figures, judge } from "./judge.ts";
import { Recorder } from "./recorder.ts";
import { type Backend, PROCESSES, type Subject } from "./subjects.ts";

const WORKER = fileURLToPath(new URL("worker.js", import.meta.url));
const WARM_UP_MS = 2_000;
const KILL_EVERY_MS = 5_000;
/** After the lease of killed holders, until their slots must be free: limiters look at the time only now and then. */
const SETTLED_MS = 1_500;
const FILLING_MS = 2_500;

export async function runSubject(subject: Subject, kills: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-recorder-"));
  const socket = join(folder, "socket");
  const recorder = await Recorder.listen(socket);
  const backend = await subject.start();
  const processes = new Processes(subject, backend, socket);
  try {
    const slots = await mostTaken(processes, recorder);
    await processes.killAll();
    await pause(LEASE_MS + SETTLED_MS);
    for (let n = 0; n < PROCESSES; n++) processes.start(n);
    await recorder.connected(PROCESSES);
    await pause(WARM_UP_MS);
    const from = performance.now();
    for (let kill = 0; kill < kills; kill++) {
      await pause(KILL_EVERY_MS);
      await processes.replace(kill % PROCESSES);
    }
    await pause(KILL_EVERY_MS);
    const to = performance.now();
    await processes.killAll();
    await pause(LEASE_MS + SETTLED_MS);
    const leaked = Math.max(0, slots - (await mostTaken(processes, recorder)));
    const figures = judge(recorder.runs, from, to);
    return { kills, ...figures, "requests failed": recorder.failures.length, "slots leaked": leaked };
  } finally {
    await processes.killAll();
    await backend.stop();
    recorder.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** How many slots fresh processes can take together. They keep them. */
async function mostTaken(processes: Processes, recorder: Recorder): Promise<number> {
  for (let n = 0; n < PROCESSES; n++) processes.start(n, "fill");
  await recorder.connected(PROCESSES);
  let most = 0;
  for (const until = performance.now() + FILLING_MS; performance.now() < until && most < LIMITS.total; ) {
    await pause(50);
    most = Math.max(most, recorder.running);
  }
  return most;
}

class Processes {
  readonly #subject: Subject;
  readonly #backend: Backend;
  readonly #socket: string;
  readonly #children = new Map<number, ChildProcess>();
  #started = 0;

  constructor(subject: Subject, backend: Backend, socket: string) {
    this.#subject = subject;
    this.#backend = backend;
    this.#socket = socket;
  }

  start(n: number, ...mode: string[]): void {
    const args = [this.#subject.id, this.#backend.addressOf(n), this.#socket, `${++this.#started}`, ...mode];
    this.#children.set(n, spawn(process.execPath, [WORKER, ...args], { stdio: ["ignore", "inherit", "inherit"] }));
  }

  /** Kills a process, and what runs beside it, and starts both again. */
  async replace(n: number): Promise<void> {
    await Promise.all([this.#kill(n), this.#backend.killBeside?.(n)]);
    this.start(n);
  }

  async killAll(): Promise<void> {
    await Promise.all([...this.#children.keys()].map((n) => this.#kill(n)));
  }

  async #kill(n: number): Promise<void> {
    const child = this.#children.get(n);
    if (child === undefined) return;
    this.#children.delete(n);
    const exited = once(child, "exit");
    if (child.kill("SIGKILL")) await exited;
  }
}
