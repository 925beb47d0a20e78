import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { afterEach } from "vitest";
import { bundleFile } from "./bundle-file.ts";
import type { Job } from "./worker.ts";

const script = bundleFile("worker.ts", "node");
const running = new Set<Worker>();

/** A real worker on one of the jobs. Terminated after the test, if it has not ended. */
export async function startWorker(
  job: Pick<Job, "name" | "handle" | "board"> & Partial<Job>,
): Promise<{ worker: Worker; next: () => Promise<unknown> }> {
  const worker = new Worker(await script, { workerData: { index: 0, rounds: 1, seed: 1, ...job } });
  running.add(worker);
  const messages: unknown[] = [];
  const readers: ((message: unknown) => void)[] = [];
  const failures: ((error: unknown) => void)[] = [];
  worker.on("message", (message) => (readers.length > 0 ? readers.shift()?.(message) : messages.push(message)));
  worker.on("error", (error) => failures.forEach((fail) => fail(error)));
  worker.on("exit", () => running.delete(worker));
  const next = () =>
    new Promise((resolve, reject) => {
      failures.push(reject);
      if (messages.length > 0) resolve(messages.shift());
      else readers.push(resolve);
    });
  return { worker, next };
}

/** Resolves after the `exit` event, and what hangs on it. */
export async function terminate(worker: Worker): Promise<void> {
  const exited = once(worker, "exit");
  await worker.terminate();
  await exited.catch(() => undefined);
}

afterEach(async () => {
  await Promise.all([...running].map((worker) => worker.terminate()));
  running.clear();
});
