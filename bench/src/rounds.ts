/** The common part of the runners: how often to measure, in which process, and what is kept. */
import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);

/** `--rounds`; otherwise one round in short mode, which is not a measurement, and `usual` rounds in the normal mode. */
export function roundsOf(text: string | undefined, isShort: boolean, usual: number): number {
  const rounds = Number(text ?? (isShort ? 1 : usual));
  if (Number.isSafeInteger(rounds) && rounds >= 1) return rounds;
  throw new RangeError(`Expected --rounds to be an integer of at least 1, got ${text}.`);
}

/**
 * Runs a script next to the caller in a fresh process, so that compiled code and heap are new, and returns the JSON
 * that it prints.
 */
export async function measuredBy<T>(script: URL, args: readonly string[], flags: readonly string[] = []): Promise<T> {
  const { stdout } = await run(process.execPath, [...flags, fileURLToPath(script), ...args], { timeout: 120_000 });
  return JSON.parse(stdout) as T;
}

const RESULTS = fileURLToPath(new URL("../results/", import.meta.url));

/** Returns the path that it wrote, relative to the root of the repository. */
export function keepResults(name: string, report: object): string {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(`${RESULTS}${name}.json`, `${JSON.stringify({ node: process.version, ...report }, undefined, 2)}\n`);
  return `bench/results/${name}.json`;
}
