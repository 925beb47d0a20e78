import { readFileSync } from "node:fs";

/** What the server's process has used, as the system counts it; NaN where the system does not report it. */

/** The system counts in hundredths of a second. */
const TICK_MS = 10;

export function cpuMs(pid: number): number {
  const fields = read(`/proc/${pid}/stat`)
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(read(`/proc/${pid}/status`))?.[1]) * 1024;
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
