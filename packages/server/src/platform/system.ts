import { readFileSync } from "node:fs";

/**
 * Reserved for everything except connections of callers: files, the database, the control plane, refused connections.
 */
const RESERVED_SHARE = 0.5;
const MOST_RESERVED = 512;

/**
 * The number of connections that the system allows this process; `Infinity` if the system does not report it. Beyond
 * it, the system would not refuse new connections but leave them waiting without a trace.
 */
export function connectionsAllowed(): number {
  const files = Number(/^Max open files +(\d+)/m.exec(limitsText())?.[1] ?? Number.POSITIVE_INFINITY);
  return files - Math.min(MOST_RESERVED, Math.ceil(files * RESERVED_SHARE));
}

function limitsText(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    return "";
  }
}

/** Whether an address of a socket can only be reached from this machine. */
export function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/, "");
  return plain === "::1" || plain.startsWith("127.");
}
