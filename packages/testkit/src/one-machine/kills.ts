/** Runs in which processes are killed at random moments. Each returns what the log of the commands shows. */
import { Random } from "../random/index.ts";
import type { JobKind } from "./jobs.ts";
import { killGroup, Machine, type Started, type Wrapper } from "./machine.ts";

export interface KillReport {
  readonly kills: number;
  /** Jobs that started while all slots were in use. */
  readonly over: number;
  /** From the kill, or from the end of the command, to the start of the next one, in milliseconds, sorted. */
  readonly delaysMs: readonly number[];
  /** Waiting commands that never ran. */
  readonly lost: number;
}

interface KillOptions {
  readonly kills: number;
  readonly seed: number;
  readonly slots?: number;
  readonly wrapper?: Wrapper | undefined;
  /** Called after each kill. */
  readonly onKill?: (() => void) | undefined;
  /** Called with the machine at the end, before it is closed. */
  readonly after?: (machine: Machine) => Promise<void>;
}

const WAITING = 3;
/** The longest time from a full house to the kill of a holder. A command that takes a place in the queue starts meanwhile. */
const LONGEST_REST_MS = 250;

/** Kills the whole group of a holder, `exec` and its command. */
export async function killHolders(options: KillOptions): Promise<KillReport> {
  const { kills, seed, slots = 2, wrapper, after, onKill } = options;
  const machine = new Machine(slots, wrapper);
  const numbers = new Random(seed);
  const random = () => numbers.next();
  const live = new Map<string, Started>();
  const delaysMs: number[] = [];
  const fill = () => {
    while (live.size < slots + WAITING) add(live, machine.start("plain", 600));
  };
  try {
    fill();
    for (let done = 0; done < kills; done++) {
      const running = await machine.until(() => all(runningOf(machine, live), slots), "a full house");
      await pause(random() * LONGEST_REST_MS);
      const victim = running[Math.floor(random() * running.length)] as string;
      const startedBefore = machine.jobs.runs().length;
      const killedAt = wallClock();
      machine.jobs.killedAt.set(victim, killedAt);
      killGroup(live.get(victim)?.process.pid ?? 0);
      // The daemon of a task spooler runs its commands in groups of their own.
      killGroup(machine.jobs.run(victim)?.pid ?? 0);
      live.delete(victim);
      const next = await machine.until(() => machine.jobs.runs()[startedBefore], "the next start");
      delaysMs.push(next.startedAt - killedAt);
      fill();
      onKill?.();
    }
    return await report(machine, live, { kills, slots, delaysMs, after });
  } finally {
    await machine.close();
  }
}

/** Kills `exec` only, while its command runs on. */
export async function killExecs({ kills, seed, wrapper, after, onKill }: KillOptions): Promise<KillReport> {
  const slots = 1;
  const machine = new Machine(slots, wrapper);
  const numbers = new Random(seed);
  const random = () => numbers.next();
  const kinds: readonly JobKind[] = ["plain", "background", "closing"];
  const live = new Map<string, Started>();
  const delaysMs: number[] = [];
  let started = 0;
  const fill = () => {
    while (live.size < slots + WAITING) {
      add(live, machine.start(kinds[started++ % kinds.length] as JobKind, 0.06 + random() * 0.06));
    }
  };
  try {
    fill();
    for (let done = 0; done < kills; done++) {
      const index = done;
      const run = await machine.until(() => machine.jobs.runs()[index], "the next start");
      await pause(random() * 30);
      live.get(run.id)?.process.kill("SIGKILL");
      live.delete(run.id);
      fill();
      onKill?.();
    }
    await machine.until(() => machine.jobs.runs()[kills], "the last start");
    const runs = machine.jobs.runs();
    for (const [at, { startedAt }] of runs.slice(1, kills).entries()) {
      // Without an end, or with a later one, two ran at once: that is counted elsewhere.
      const { endedAt = Number.POSITIVE_INFINITY } = runs[at] ?? {};
      if (endedAt < startedAt) delaysMs.push(startedAt - endedAt);
    }
    return await report(machine, live, { kills, slots, delaysMs, after });
  } finally {
    await machine.close();
  }
}

/** Kills the keeper, while commands hold and wait, and some `exec` are dead already. */
export async function killKeepers({ kills, seed, slots = 2, after, onKill }: KillOptions): Promise<KillReport> {
  const machine = new Machine(slots);
  const numbers = new Random(seed);
  const random = () => numbers.next();
  const live = new Map<string, Started>();
  const delaysMs: number[] = [];
  const fill = () => {
    for (const [id, { process: child }] of live)
      if (child.exitCode !== null || child.signalCode !== null) live.delete(id);
    while (live.size < slots + WAITING) add(live, machine.start("plain", 0.02 + random() * 0.1));
  };
  try {
    for (let done = 0; done < kills; done++) {
      fill();
      const { pid } = await machine.until(() => machine.state(), "a keeper");
      await pause(random() * 60);
      if (random() < 0.3) killOneExec(machine, live);
      const startedBefore = machine.jobs.runs().length;
      const killedAt = wallClock();
      kill(pid);
      const next = await machine.until(() => {
        fill();
        return machine.jobs.runs()[startedBefore];
      }, "the next start");
      delaysMs.push(next.startedAt - killedAt);
      onKill?.();
    }
    await Promise.all(Array.from(live.values(), ({ exited }) => exited));
    // If the last keeper was killed after the last command had its slot, only the next command can start another.
    await machine.start("plain", 0).exited;
    const runs = await machine.until(() => all(ended(machine), machine.jobs.runs().length), "the end of all jobs");
    const reported = await report(machine, live, { kills, slots, delaysMs, after });
    return { ...reported, lost: machine.started - runs.length };
  } finally {
    await machine.close();
  }
}

/** Kills an `exec` whose command runs. */
function killOneExec(machine: Machine, live: Map<string, Started>): void {
  const [victim] = runningOf(machine, live);
  if (victim === undefined) return;
  live.get(victim)?.process.kill("SIGKILL");
  live.delete(victim);
}

function ended(machine: Machine) {
  return machine.jobs.runs().filter(({ endedAt }) => endedAt !== undefined);
}

async function report(
  machine: Machine,
  live: Map<string, Started>,
  { kills, slots, delaysMs, after }: { kills: number; slots: number; delaysMs: number[]; after: KillOptions["after"] },
): Promise<KillReport> {
  for (const { id, process: child } of live.values()) {
    machine.jobs.killedAt.set(id, wallClock());
    killGroup(child.pid ?? 0);
  }
  await after?.(machine);
  return { kills, over: machine.jobs.startsBeyond(slots), delaysMs: delaysMs.sort((a, b) => a - b), lost: 0 };
}

function add(live: Map<string, Started>, started: Started): void {
  live.set(started.id, started);
}

function runningOf(machine: Machine, live: Map<string, Started>): string[] {
  return machine.jobs
    .runs()
    .filter(({ id, endedAt }) => endedAt === undefined && live.has(id))
    .map(({ id }) => id);
}

function all<T>(items: T[], count: number): T[] | undefined {
  return items.length >= count ? items : undefined;
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

function wallClock(): number {
  return Date.now();
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
