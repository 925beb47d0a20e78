import { execFileSync } from "node:child_process";
import { KEY, keepWorker, type TestWorker } from "./worker.ts";

/** The processes of workerd that this process has started. */
function workerds(): number[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,comm="], { encoding: "utf8" }).split("\n");
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent, name]) => Number(parent) === process.pid && name?.includes("workerd") === true)
    .map(([pid]) => Number(pid));
}

export interface KilledRun {
  /** Grants that a client got. */
  readonly answered: number;
  /** Of these, how many could not be renewed after the process was killed and started again. */
  readonly lost: number;
  readonly repeatedFences: number;
  readonly kills: number;
}

export interface KilledInit {
  readonly script: string;
  /** The folder of the storage. */
  readonly storage: string;
  /** Answered grants in all, and between two kills. */
  readonly grants: number;
  readonly perLife: number;
}

interface Grant {
  readonly slotToken: string;
  readonly fence: number;
}

/** Parallel callers of one host. */
const CALLERS = 8;
const HOST = "killed.example.com";

/** Kills workerd with SIGKILL while it answers grants, again and again, and counts what was lost. */
export async function killWhileGranting({ script, storage, grants, perLife }: KilledInit): Promise<KilledRun> {
  const fences = new Set<number>();
  const count = { answered: 0, lost: 0, repeatedFences: 0, kills: 0 };
  let held: Grant[] = [];
  for (;;) {
    const others = workerds();
    const worker = await keepWorker({ script, storage });
    const pids = workerds().filter((pid) => !others.includes(pid));
    try {
      const isHeld = await inParallel(held, ({ slotToken }) => renew(worker, slotToken));
      count.lost += isHeld.filter((isOk) => !isOk).length;
      // Some stay, so that a restart finds old slots, too.
      const ended = held.filter((_, at) => at % 4 > 0);
      await inParallel(ended, ({ slotToken }) => call(worker, "release", { slotToken }));
      held = held.filter((_, at) => at % 4 === 0 && isHeld[at]);
      if (count.answered >= grants) return count;
      const granted = await grantUntilKilled(worker, perLife, () => {
        for (const pid of pids) process.kill(pid, "SIGKILL");
      });
      count.kills++;
      count.answered += granted.length;
      for (const { fence } of granted) {
        if (fences.has(fence)) count.repeatedFences++;
        fences.add(fence);
      }
      held.push(...granted);
    } finally {
      await worker.stop().catch(() => {});
    }
  }
}

async function grantUntilKilled(worker: TestWorker, perLife: number, kill: () => void): Promise<Grant[]> {
  const granted: Grant[] = [];
  let isKilled = false;
  const caller = async (bucket: string) => {
    while (!isKilled) {
      const grant = await call(worker, "acquire", { hostname: HOST, bucket, waitMs: 5_000 }).catch(() => undefined);
      if (grant?.["result"] === "granted") granted.push(grant as unknown as Grant);
      if (granted.length >= perLife && !isKilled) {
        isKilled = true;
        kill();
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, (_, at) => caller(`caller-${at}`)));
  return granted;
}

/** Some at a time: a system accepts a limited number of connections at once. */
async function inParallel<A, B>(items: readonly A[], work: (item: A) => Promise<B>): Promise<B[]> {
  const results: B[] = [];
  let at = 0;
  const worker = async () => {
    for (let mine = at++; mine < items.length; mine = at++) results[mine] = await work(items[mine] as A);
  };
  await Promise.all(Array.from({ length: CALLERS }, worker));
  return results;
}

async function renew(worker: TestWorker, slotToken: string): Promise<boolean> {
  return (await call(worker, "renew", { slotToken }))["result"] === "ok";
}

/** A call of the API. */
export async function call({ ask }: TestWorker, name: string, body: object): Promise<{ [key: string]: unknown }> {
  const headers = { "content-type": "application/json", "x-fq-auth": KEY };
  const response = await ask(`/api/v0/fairqueue/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as { [key: string]: unknown };
}
