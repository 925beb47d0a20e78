/** What is measured without kills: start-up, hand-over, fairness between groups, a crowd. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Machine, Started } from "@slotkeeper/testkit/one-machine";

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN;
}

/** Milliseconds of one command line, from its start to its end. */
export function timeOf([file = "", ...args]: readonly string[]): number {
  const startedAt = performance.now();
  const { status } = spawnSync(file, args, { stdio: "ignore" });
  if (status !== 0) throw new Error(`${file} ended with ${status}`);
  return performance.now() - startedAt;
}

/** From the end of each command to the start of the next, all queued: milliseconds. */
export async function handOver(machine: Machine, jobs: number): Promise<number[]> {
  const first = machine.start("plain", 0.5 + jobs * 0.15);
  await machine.until(() => machine.jobs.run(first.id), "the first start");
  const others = Array.from({ length: jobs }, () => machine.start("plain", 0.02));
  await Promise.all([first, ...others].map(({ exited }) => exited));
  const runs = machine.jobs.runs();
  return runs.slice(2).map(({ startedAt }, at) => startedAt - (runs[at + 1]?.endedAt ?? 0));
}

/** How many commands of a crowd start before the only one of another group that came after them. */
export async function overtakers(machine: Machine, crowd: number): Promise<number> {
  const first = machine.start("plain", 0.5 + crowd * 0.15, "many");
  await machine.until(() => machine.jobs.run(first.id), "the first start");
  const others = Array.from({ length: crowd - 1 }, () => machine.start("plain", 0.05, "many"));
  await queued(machine, crowd - 1);
  const one = machine.start("plain", 0.01, "one");
  await queued(machine, crowd);
  const before = machine.jobs.runs().length;
  await machine.until(() => machine.jobs.run(one.id), "the start of the one");
  const place = machine.jobs.runs().findIndex(({ id }) => id === one.id);
  await Promise.all([first, ...others].map(({ exited }) => exited));
  return place - before;
}

/** Others do not report who waits: they get the time that their processes need to start. */
async function queued(machine: Machine, waiters: number): Promise<void> {
  if ((await machine.state()) === undefined) {
    await pause(1_000 + waiters * 20);
    return;
  }
  await machine.until(
    async () => (((await machine.state())?.names[0]?.waiters.length ?? 0) >= waiters ? true : undefined),
    "the queue",
  );
}

/** Commands that start at the same instant, without a keeper. */
export async function crowd(machine: Machine, count: number) {
  const all: Started[] = Array.from({ length: count }, () => machine.start("plain", 0));
  const codes = await Promise.all(all.map(({ exited }) => exited));
  const keepers = machine.files().filter((file) => /^s\.\d+$/.test(file)).length;
  return { ran: codes.filter((code) => code === 0).length, keepers, most: machine.jobs.mostAtOnce() };
}

/** The memory of the keeper in MB. */
export async function keeperMegabytes(machine: Machine): Promise<number> {
  const { pid = 0 } = (await machine.state()) ?? {};
  const [, kilobytes = "0"] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (Number(kilobytes) * 1024) / 1e6;
}
