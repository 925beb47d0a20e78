import type { Job } from "./job.ts";

/** How a process asks a limiter. */
export interface Gate {
  /** Resolves when the work of the job has run under the limits. */
  run(job: Job): Promise<void>;
}

/** Connects a process to the limiter at `address`. `work` returns what a job really cost. */
export type OpenGate = (address: string, work: (job: Job) => Promise<number>) => Promise<Gate>;
