import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Identifies a process. The number alone is not enough, because the system reuses numbers. */
export interface ProcessIdentity {
  /** Unique for each lock that is taken. */
  readonly id: string;
  readonly pid: number;
  /** When the process started, in the units of the system; empty if the system does not report it. */
  readonly startedAt: string;
  /** Where the process number is valid: machine, boot, namespace. */
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

/** Returns `undefined` if the number is not valid here: the process is in another container or on another machine. */
export async function isAlive(other: ProcessIdentity, self: ProcessIdentity): Promise<boolean | undefined> {
  if (other.place !== self.place) return undefined;
  if (other.startedAt !== "" && self.startedAt !== "") return (await startOf(other.pid)) === other.startedAt;
  return isNumberInUse(other.pid);
}

/**
 * The 22nd field of `stat`. The second field is a name in parentheses, which may contain anything. Returns `undefined`
 * for a process that has ended, even if its parent has not waited for it: its entry stays (state Z or X), but it does
 * not run any more.
 */
export async function startOf(pid: number): Promise<string | undefined> {
  if (isMac) return (await printed("ps", ["-o", "lstart=", "-p", String(pid)])) || undefined;
  const stat = ofSystem(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return /[ZX]/i.test(fields[0] ?? "") ? undefined : fields[19];
}

async function placeOfNumbers(): Promise<string> {
  const boot = await bootId();
  const space = ofSystem(() => readlinkSync("/proc/self/ns/pid"));
  return boot === "" ? hostname() : `${boot} ${space}`;
}

/** The system's name for the present start of the machine; empty if it has none. */
export async function bootId(): Promise<string> {
  if (isMac) return printed("sysctl", ["-n", "kern.boottime"]);
  return ofSystem(() => readFileSync("/proc/sys/kernel/random/boot_id", "latin1")).trim();
}

/**
 * Empty if the system does not have it. Read at once: the system makes these files from its memory, and a read by the
 * threads of Node changes threads eight times, which takes milliseconds on a busy machine.
 */
function ofSystem(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}

/** macOS has no `/proc`. Not tested there. */
const isMac = process.platform === "darwin";

/** What a program of the system prints; empty if it fails. */
async function printed(program: string, args: readonly string[]): Promise<string> {
  const { execFile } = await import("node:child_process");
  return new Promise((resolve) => void execFile(program, args, (error, out) => resolve(error ? "" : out.trim())));
}

function isNumberInUse(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
