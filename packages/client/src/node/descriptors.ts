/**
 * The descriptors of the slots of a command, and those that a process must not inherit.
 *
 * FD1  The keeper outlives its caller and inherits none of its descriptors: a lock or a slot of the caller would last as long
 *     as the keeper. They lead to `/dev/null`, because Node cannot close them for a child. A command does inherit those
 *     from 16 up, as `<(…)` of bash; Node closes the others.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";

/**
 * The descriptor with which a command holds its slot. A command under several slots has the following ones, too. The
 * keeper must not inherit them from a command.
 */
export const LEASE_FD = 77;

/** The slots under which a command runs are few. */
const MOST_LEASES = 16;

/** `spawn` with these descriptors only (FD1). */
export function spawnWith(
  descriptors: readonly ("ignore" | number)[],
  file: string,
  args: readonly string[],
  options: SpawnOptions,
): ChildProcess {
  const nothing = openSync("/dev/null", "r");
  const inherited = inheritedDescriptors();
  try {
    const stdio = Array.from({ length: Math.max(descriptors.length, ...inherited.map((fd) => fd + 1)) }, (_, fd) => {
      const given = descriptors[fd] ?? "ignore";
      return given === "ignore" && inherited.includes(fd) ? nothing : given;
    });
    return spawn(file, args, { ...options, stdio });
  } finally {
    closeSync(nothing);
  }
}

const CLOSED_ON_EXEC = 0o2000000;

/** The descriptors that a child of this process would get. Without `/proc`, only those of slots are known. */
function inheritedDescriptors(): number[] {
  try {
    const open = readdirSync("/proc/self/fdinfo").map(Number);
    return open.filter((fd) => fd > 2 && isInherited(fd));
  } catch {
    return Array.from({ length: MOST_LEASES }, (_, at) => LEASE_FD + at);
  }
}

function isInherited(fd: number): boolean {
  try {
    const [, flags = "0"] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8")) ?? [];
    return (Number.parseInt(flags, 8) & CLOSED_ON_EXEC) === 0;
  } catch {
    // The descriptor with which the folder was listed.
    return false;
  }
}
