import { randomUUID } from "node:crypto";
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";

/** Which process, not only which number: numbers are given out again. */
export interface ProcessIdentity {
  /** Its own for each lock taken. */
  readonly id: string;
  readonly pid: number;
  /** When the process started, as the system counts; empty where the system does not report it. */
  readonly startedAt: string;
  /** Where the number means anything: machine, boot, namespace. */
  readonly place: string;
  readonly host: string;
}

/** The identity of this process, as its lock names it. */
export async function thisProcess(): Promise<ProcessIdentity> {
  return {
    id: randomUUID(),
    pid: process.pid,
    startedAt: (await startOf(process.pid)) ?? "",
    place: await placeOfNumbers(),
    host: hostname(),
  };
}

/** Undefined: its number means nothing here, in another container or on another machine. */
export async function isAlive(other: ProcessIdentity, self: ProcessIdentity): Promise<boolean | undefined> {
  if (other.place !== self.place) return undefined;
  if (other.startedAt !== "" && self.startedAt !== "") return (await startOf(other.pid)) === other.startedAt;
  return isNumberInUse(other.pid);
}

/**
 * The 22nd field of `stat`; the second is a name in parentheses, which may hold anything. Undefined for a process that has
 * ended, also while its parent has not waited for it: its entry stays (state Z or X), but it runs nothing any more.
 */
async function startOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "latin1").catch(() => undefined);
  const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
  return /[ZX]/i.test(fields?.[0] ?? "") ? undefined : fields?.[19];
}

async function placeOfNumbers(): Promise<string> {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "latin1").catch(() => "");
  const space = await readlink("/proc/self/ns/pid").catch(() => "");
  return boot === "" ? hostname() : `${boot.trim()} ${space}`;
}

function isNumberInUse(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
