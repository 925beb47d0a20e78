/** The programs that try many seeds: one that never ends, and runs that are ended abruptly. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

interface Range {
  readonly from: number;
  readonly to: number;
  readonly failed?: readonly number[] | undefined;
}
interface Seeds {
  readonly LIMIT_MS: number;
  readonly seedsLeft: (from: number, to: number, kept: readonly Range[]) => number[];
  readonly runSeeds: (options: {
    program: string;
    seeds: readonly number[];
    workers: number;
    keep: (range: Range) => void;
    onFailure: (seed: number, what: string) => void;
    mostFailures?: number;
  }) => Promise<{ failed: number[]; finished: number }>;
}

const PROOF = fileURLToPath(new URL("../../../scripts/proof", import.meta.url));
const { LIMIT_MS, runSeeds, seedsLeft } = (await import(join(PROOF, "seeds.mjs"))) as Seeds;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "slotkeeper-seeds-"));
  cpSync(PROOF, join(folder, "scripts/proof"), { recursive: true });
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true });
});

function commitOnce(): void {
  const git = (...args: string[]) => execFileSync("git", args, { cwd: folder });
  git("init", "-q");
  git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "--allow-empty", "-m", "first");
}

/** A program whose threads answer seeds with this body. */
function program(body: string, main = ""): string {
  const file = join(folder, "scripts/try.mjs");
  const lines = [
    'import { isMainThread } from "node:worker_threads";',
    'import { answerSeeds } from "./proof/seeds.mjs";',
    'import { proveSeeds } from "./proof/prove-seeds.mjs";',
    `if (!isMainThread) answerSeeds(async (seed) => { ${body} });`,
    `else { ${main} }`,
  ];
  writeFileSync(file, lines.join("\n"));
  return file;
}

async function run(body: string, to: number, workers = 1, mostFailures = Number.POSITIVE_INFINITY) {
  const kept: Range[] = [];
  const failures: string[] = [];
  const seeds = seedsLeft(1, to, []);
  const onFailure = (seed: number, what: string) => failures.push(`${seed}: ${what}`);
  const keep = (range: Range) => kept.push(range);
  const result = await runSeeds({ program: program(body), seeds, workers, keep, onFailure, mostFailures });
  return { ...result, kept: kept.map(({ from, to: last, failed }) => ({ from, to: last, failed })), failures };
}

it("a seed that never ends is stopped after the limit and counts as failed, and the others go on", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const failures: string[] = [];
  const running = runSeeds({
    program: program("if (seed === 3) for (;;) {} if (seed === 2) return { what: 'wrong' };"),
    seeds: [1, 2, 3, 4, 5],
    workers: 1,
    keep: () => undefined,
    onFailure: (seed, what) => {
      failures.push(`${seed}: ${what}`);
      // The thread gets seed 3 as soon as this returns.
      if (seed === 2) setImmediate(() => vi.advanceTimersByTime(LIMIT_MS));
    },
  });
  expect(await running).toEqual({ failed: [2, 3], finished: 5 });
  expect(failures).toEqual(["2: wrong", "3: did not end within 120 s"]);
});

it("a seed that throws or ends its thread counts as failed, and the others go on", async () => {
  const { finished, failures, kept } = await run(
    "if (seed === 2) throw new Error('broken'); if (seed === 4) process.exit(7);",
    5,
  );
  expect(failures).toEqual(["2: Error: broken", "4: its thread ended with code 7"]);
  expect(finished).toBe(5);
  expect(kept).toEqual([{ from: 1, to: 5, failed: [2, 4] }]);
});

it("a run that may fail once ends at its first failure", async () => {
  expect(await run("if (seed > 2) return { what: 'wrong' };", 9, 1, 1)).toMatchObject({ failed: [3], finished: 3 });
});

it("several threads try every seed once, and what they finish is kept in ranges without gaps", async () => {
  const { kept, finished } = await run("", 2_500, 3);
  expect(finished).toBe(2_500);
  expect(kept.length).toBeGreaterThan(2);
  expect(seedsLeft(1, 2_500, kept)).toEqual([]);
  expect(kept.reduce((sum, { from, to }) => sum + to - from + 1, 0)).toBe(2_500);
});

it("seeds that earlier runs have finished are left out", () => {
  const kept = [
    { from: 8, to: 9 },
    { from: 2, to: 4 },
  ];
  expect(seedsLeft(1, 10, kept)).toEqual([1, 5, 6, 7, 10]);
  expect(seedsLeft(3, 8, kept)).toEqual([5, 6, 7]);
  expect(seedsLeft(2, 3, kept)).toEqual([]);
});

it("a run continues where the last one on the commit was killed, and the parts add up", async () => {
  commitOnce();
  const main = `await proveSeeds({ kind: "simulate", unit: "seeds", failures: "bad", program: import.meta.filename,
    from: 1, to: Number(process.argv[2]), workers: 1 });`;
  const file = program("if (seed === 2500 && process.env.KILL) process.kill(process.pid, 'SIGKILL');", main);
  const start = (to: number, kill = "") =>
    spawnSync(process.execPath, [file, `${to}`], { env: { ...process.env, KILL: kill }, encoding: "utf8" });
  expect(start(3_000, "yes").signal).toBe("SIGKILL");
  expect(start(3_000).stdout).toMatch(/^1000 seeds in \d+ s, 2000 before: 0 failed$/m);
  expect(start(3_000).stdout).toMatch(/^0 seeds in \d+ s, 3000 before: 0 failed$/m);
  const { sumsOf } = (await import(join(PROOF, "results.mjs"))) as { sumsOf: (parts: readonly unknown[]) => unknown[] };
  const proof = join(folder, ".proof");
  const lines = readdirSync(proof).flatMap((name) => readFileSync(join(proof, name), "utf8").split("\n"));
  const parts = lines.filter(Boolean).map((line) => JSON.parse(line) as unknown);
  expect(sumsOf(parts)).toMatchObject([{ kind: "simulate", amount: 3_000, isPassed: true, figures: { bad: 0 } }]);

  mkdirSync(join(folder, "packages/queue/src"), { recursive: true });
  writeFileSync(join(folder, "packages/queue/src/changed.ts"), "");
  expect(start(10).stdout).toMatch(/^10 seeds in \d+ s, 0 before/m);
});

it("a failure of an earlier run on the commit still fails the run", () => {
  commitOnce();
  const main = `await proveSeeds({ kind: "reference", unit: "histories", program: import.meta.filename,
    from: 1, to: 9, workers: 2 });`;
  const file = program("if (seed === 4) return { what: 'they differ', story: ['step 1'] };", main);
  const start = () => spawnSync(process.execPath, [file], { encoding: "utf8" });
  const repeat = "(repeat it: npm run reference -- --seed 4)";
  const first = start();
  expect(first.stdout).toContain(`seed 4: they differ  ${repeat}\n    step 1\n`);
  expect(first.status).toBe(1);
  const second = start();
  expect(second.stdout).toContain(`seed 4: failed in an earlier run on this commit  ${repeat}`);
  expect(second.status).toBe(1);
});
