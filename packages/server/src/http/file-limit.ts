import { readFileSync } from "node:fs";

/** For everything that is no connection of a caller: files, the database, the control plane, those that are refused. */
const RESERVED_SHARE = 0.5;
const MOST_RESERVED = 512;

/**
 * How many connections the system lets this process have; infinite where the system does not report it. Beyond that it would not
 * refuse newcomers but leave them waiting, unseen.
 */
export function connectionsAllowed(limits = limitsText()): number {
  const files = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  return files - Math.min(MOST_RESERVED, Math.ceil(files * RESERVED_SHARE));
}

function limitsText(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    return "";
  }
}
