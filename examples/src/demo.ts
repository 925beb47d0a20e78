// `npm run demo`: twelve jobs of three users over four slots, two per user, drawn live.
// One job hangs; its lease ends and the slot goes to the next waiter.
import { isSlotkeeperError, SlotPool } from "slotkeeper";

type State = "waiting" | "running" | "done" | "lost its slot";
interface Job {
  readonly user: string;
  readonly workMs: number;
  state: State;
}

const jobs: Job[] = Array.from({ length: 12 }, (_, index) => ({
  user: ["ann", "bob", "cleo"][index % 3] as string,
  workMs: index === 4 ? 60_000 : 300 + ((index * 137) % 500),
  state: "waiting",
}));
const pool = new SlotPool({ name: "demo", max: 4, maxPerKey: 2, ttlMs: 1_200, abortOnExpiry: true });
const isTerminal = process.stdout.isTTY;
const marks: Record<State, string> = { waiting: "·", running: "▶", done: "✓", "lost its slot": "✗" };

function draw(isFirst = false): void {
  if (!isTerminal) return;
  if (!isFirst) process.stdout.write(`\x1b[${jobs.length + 1}A`);
  for (const [index, job] of jobs.entries()) {
    process.stdout.write(
      `\x1b[2K  ${marks[job.state]} job ${String(index + 1).padStart(2)}  ${job.user.padEnd(5)} ${job.state}\n`,
    );
  }
  const { inUse, max, waiting } = pool.stats();
  process.stdout.write(
    `\x1b[2K  ${"█".repeat(inUse)}${"░".repeat(max - inUse)} ${inUse} of ${max} in use, ${waiting} waiting\n`,
  );
}

function enter(job: Job, state: State): void {
  job.state = state;
  if (isTerminal) draw();
  else console.log(`${job.user} job ${jobs.indexOf(job) + 1}: ${state}`);
}

async function work(job: Job, signal: AbortSignal): Promise<void> {
  enter(job, "running");
  await new Promise<void>((done, fail) => {
    const timer = setTimeout(done, job.workMs);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      fail(signal.reason);
    });
  });
}

async function play(job: Job): Promise<void> {
  try {
    await pool.run(job.user, (slot) => work(job, slot.signal));
    enter(job, "done");
  } catch (error) {
    if (!isSlotkeeperError(error)) throw error;
    enter(job, "lost its slot");
  }
}

console.log("Slotkeeper: 12 jobs over 4 slots, at most 2 per user. Job 5 hangs and loses its slot after 1.2 s.\n");
draw(true);
await Promise.all(jobs.map((job) => play(job)));
const { acquired, released, expired } = pool.stats();
console.log(`\n${acquired} slots handed out, ${released} released, ${expired} taken back. Next: README.md`);
