/**
 * Shows faults of the peers, each in a few lines and with a time limit: `node bench/dist/peer-faults.js`.
 * `bench/PEERS.md` records its output. Our own library goes through the same trials.
 *
 * Every trial runs in its own process, because some of them end in a hang or a stack overflow.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { gateWith, type Subject } from "./subject.ts";
import { loadSubject, subjectIds } from "./subjects/index.ts";
import { wallClock } from "./timing.ts";
import { heldGate, ignore, Tally } from "./workloads/queued.ts";

/** Returns what happened, or `undefined` if the subject does not have the operation. */
type Trial = (subject: Subject) => Promise<string | undefined>;

const LIMIT_MS = 15_000;

const pause = (delayMs: number) => new Promise((resolve) => setTimeout(resolve, delayMs));

const elapsedSince = (startedAt: number): string => `${((performance.now() - startedAt) / 1000).toFixed(2)} s`;

/** Nanoseconds per waiter to queue and drain `waiters`. */
async function drainCost(subject: Subject, waiters: number): Promise<number> {
  const gate = await heldGate(subject);
  const tally = new Tally(waiters, gate.passOn);
  const elapsed = wallClock();
  for (let i = 0; i < waiters; i++) void gate.wait().then(tally.count, tally.refuse);
  gate.open();
  await tally.done;
  return elapsed() / waiters;
}

/**
 * The cost per waiter as the queue gets longer. The garbage collector may multiply the cost for a while, so only a
 * factor of eight at the longest queue counts. The reported size is the first at which the factor was four.
 */
const longQueue: Trial = async (subject) => {
  let base = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 5; i++) base = Math.min(base, await drainCost(subject, 4000));
  const growths: { waiters: number; growth: number }[] = [];
  for (const waiters of [8000, 16_000, 32_000, 64_000]) {
    growths.push({ waiters, growth: (await drainCost(subject, waiters)) / base });
  }
  const last = growths.at(-1)?.growth ?? 0;
  const text = `${last.toFixed(1)} × the cost per waiter at 64,000 as at 4,000`;
  if (last < 8) return text;
  const cliff = growths.find((one) => one.growth >= 4)?.waiters;
  return `FAULT ${text}; four times by ${cliff}`;
};

/** Two releases of one slot while others wait: how many then hold a semaphore with one slot? */
const doubleRelease: Trial = async (subject) => {
  if (subject.lacks.acquire !== undefined) return undefined;
  const { acquire, release } = gateWith(subject, 1, "acquire", "release");
  const first = await acquire();
  let holders = 0;
  for (let i = 0; i < 2; i++) void acquire().then(() => (holders += 1));
  await pause(5);
  release(first as never);
  release(first as never);
  await pause(20);
  return holders === 1 ? "one holder" : `FAULT ${holders} holders of one slot`;
};

/** 20,000 waiters time out behind a held slot; then the slot is released and a new caller asks. */
const timedOutWaiters: Trial = async (subject) => {
  if (subject.lacks.timeout !== undefined) return undefined;
  const waiters = 20_000;
  const gate = await heldGate(subject);
  const tally = new Tally(waiters, ignore);
  for (let i = 0; i < waiters; i++) gate.waitWithin(20).then(tally.refuse, tally.count);
  await tally.done;
  const startedAt = performance.now();
  const isGranted = gate.wait().then(() => true);
  gate.open();
  await isGranted;
  const took = performance.now() - startedAt;
  const text = `the next acquire took ${elapsedSince(startedAt)} after ${waiters} timeouts`;
  return took > 50 ? `FAULT ${text}` : text;
};

const outcomeOf = (promise: Promise<unknown>): Promise<string> =>
  Promise.race([
    promise.then(
      () => "granted",
      () => "rejected",
    ),
    pause(300).then(() => "pending"),
  ]);

/** A signal that has already aborted, behind a held slot. */
const abortedBefore: Trial = async (subject) => {
  if (subject.lacks.signal !== undefined) return undefined;
  const gate = await heldGate(subject);
  const outcome = await outcomeOf(gate.waitUnlessAborted(AbortSignal.abort()));
  return outcome === "rejected" ? "rejects at once" : `FAULT ${outcome} after 300 ms`;
};

/** A waiter aborted while it queues: is it rejected, and does the waiter behind it get its turn? */
const abortedWhileQueued: Trial = async (subject) => {
  if (subject.lacks.signal !== undefined) return undefined;
  const gate = await heldGate(subject);
  const controller = new AbortController();
  const aborted = outcomeOf(gate.waitUnlessAborted(controller.signal));
  const behind = gate.wait();
  controller.abort();
  const outcome = await aborted;
  gate.open();
  const next = await outcomeOf(behind);
  if (outcome === "rejected" && next === "granted") return "rejects at once, the next one gets its turn";
  return `FAULT the aborted waiter is ${outcome} after 300 ms, the one behind it ${next}`;
};

/** One signal shared by 2,000 and by 32,000 waiters, all granted in turn: cost per waiter. */
const sharedSignal: Trial = async (subject) => {
  if (subject.lacks.signal !== undefined) return undefined;
  const drain = async (waiters: number): Promise<number> => {
    const gate = await heldGate(subject);
    const tally = new Tally(waiters, gate.passOn);
    const { signal } = new AbortController();
    const startedAt = performance.now();
    for (let i = 0; i < waiters; i++) gate.waitUnlessAborted(signal).then(tally.count, tally.refuse);
    gate.open();
    await tally.done;
    return (performance.now() - startedAt) / waiters;
  };
  for (let i = 0; i < 3; i++) await drain(2000);
  const growth = (await drain(32_000)) / (await drain(2000));
  const text = `${growth.toFixed(1)} × the cost per waiter at 32,000 as at 2,000`;
  return growth > 4 ? `FAULT ${text}` : text;
};

/** Two slots become free in one turn while two callers wait: do both start at once? */
const twoFit: Trial = async (subject) => {
  if (subject.lacks.slots !== undefined || subject.lacks.acquire !== undefined) return undefined;
  const { acquire, release } = gateWith(subject, 2, "acquire", "release");
  const held = [await acquire(), await acquire()];
  let started = 0;
  for (let i = 0; i < 2; i++) void acquire().then(() => (started += 1));
  await pause(5);
  for (const handle of held) release(handle as never);
  await pause(50);
  return started === 2 ? "both start" : `FAULT ${started} of 2 start`;
};

const trials: Readonly<Record<string, Trial>> = {
  "a long queue": longQueue,
  "a double release": doubleRelease,
  "waiters that timed out": timedOutWaiters,
  "an already aborted signal": abortedBefore,
  "an abort while queued": abortedWhileQueued,
  "a signal shared by many": sharedSignal,
  "two slots freed, two wait": twoFit,
};

/** Runs one trial in its own process and prints its line. */
async function runTrial(name: string, subjectId: string): Promise<void> {
  console.log((await trials[name]?.(await loadSubject(subjectId))) ?? "");
  process.exit(0);
}

function verdictOf(name: string, subjectId: string): string {
  const args = ["--no-warnings", fileURLToPath(import.meta.url), name, subjectId];
  const { status, stdout, stderr, error } = spawnSync(process.execPath, args, { encoding: "utf8", timeout: LIMIT_MS });
  if (error !== undefined) return `SLOW not done after ${LIMIT_MS / 1000} s`;
  if (status === 0) return stdout.trim();
  const cause = stderr.split("\n").find((line) => /^\w*Error/.test(line));
  return `FAULT ${status === 13 ? "hangs: a waiter is never answered" : `dies: ${cause ?? "no message"}`}`;
}

const [trialName, subjectId] = process.argv.slice(2);
if (trialName !== undefined && subjectId !== undefined) await runTrial(trialName, subjectId);
for (const name of Object.keys(trials)) {
  console.log(`\n${name}`);
  for (const id of subjectIds) {
    const verdict = verdictOf(name, id);
    if (verdict !== "") console.log(`  ${id.padEnd(20)} ${verdict}`);
  }
}
