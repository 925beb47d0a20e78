/**
 * Pins server and load to one core each. If two processes take turns, as in S6, the system may run both on one core or
 * on two, and change that from run to run. On one core no thread is woken across cores, which is most of the round trip
 * of a bare server. Real callers of a service run elsewhere, and so do these.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const CORES = { server: 0, load: 1 } as const;
let isReported = false;

/**
 * Pins the main thread of a process; garbage collection and compilation may run anywhere. If the system does not
 * support it, one message says so.
 */
export async function pin(pid: number | undefined, side: keyof typeof CORES): Promise<void> {
  try {
    await promisify(execFile)("taskset", ["--pid", "--cpu-list", String(CORES[side]), String(pid)]);
  } catch {
    if (!isReported)
      process.stderr.write("server and load could not be given a core each: expect two kinds of rounds\n");
    isReported = true;
  }
}
