/** What the runners have in common: how often to measure, where, and what is kept of it. */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What `--rounds` says; else once in short mode, which is no measurement, and `usual` times otherwise. */
export function roundsOf(text: string | undefined, isShort: boolean, usual: number): number {
  const rounds = Number(text ?? (isShort ? 1 : usual));
  if (Number.isSafeInteger(rounds) && rounds >= 1) return rounds;
  throw new RangeError(`Expected --rounds to be an integer of at least 1, got ${text}.`);
}

/** What the script, which is beside the caller, prints as JSON. A process of its own: compiled code and heap are new. */
export async function measuredBy<T>(script: URL, args: readonly string[], flags: readonly string[] = []): Promise<T> {
  const { stdout } = await run(process.execPath, [...flags, fileURLToPath(script), ...args], { timeout: 120_000 });
  return JSON.parse(stdout) as T;
}

const RESULTS = fileURLToPath(new URL("../results/", import.meta.url));

/** Returns where it wrote to, as seen from the root of the repository. */
export function keepResults(name: string, report: object): string {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(`${RESULTS}${name}.json`, `${JSON.stringify({ node: process.version, ...report }, undefined, 2)}\n`);
  return `bench/results/${name}.json`;
}
