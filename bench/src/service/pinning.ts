/**
 * Server and load on a core each. Where two processes take turns, as in S6, a system may put both on one core or on two,
 * and change its mind from run to run: on one core no thread is woken across cores, which is most of what a bare server's round
 * trip takes. Callers of a service are elsewhere; so they are here.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const CORES = { server: 0, load: 1 } as const;
let isReported = false;

/** Of a process its main thread: collecting garbage and compiling may go anywhere. Where the system cannot do it, one message says so. */
export async function pin(pid: number | undefined, side: keyof typeof CORES): Promise<void> {
  try {
    await promisify(execFile)("taskset", ["--pid", "--cpu-list", String(CORES[side]), String(pid)]);
  } catch {
    if (!isReported)
      process.stderr.write("server and load could not be given a core each: expect two kinds of rounds\n");
    isReported = true;
  }
}
