import { runChaos } from "@slotkeeper/testkit/chaos";
import { expect, test } from "vitest";

/** The short mode of `npm run chaos`, with a new seed every time. The long mode with the same seed repeats its faults. */
const SECONDS = 60;
const seed = Number(process.env["SLOTKEEPER_CHAOS_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

test(`a fleet under faults breaks no limit and loses no session (seed ${seed})`, { timeout: 300_000 }, async () => {
  const progress: string[] = [];
  // The time of a recovery also depends on the machine that runs the tests. Here it only has to recover.
  const report = await runChaos({ seconds: SECONDS, seed, recoveryMs: 60_000, log: (line) => progress.push(line) });
  expect({ misses: report.misses, progress }).toEqual({ misses: [], progress });
  expect(report.violations).toEqual([]);
  expect(report.grants).toBeGreaterThan(100);
  // Budgets, which only one host has.
  expect(report.judged.find(({ rule }) => rule === "HIST14")?.judged).toBeGreaterThan(100);
});
