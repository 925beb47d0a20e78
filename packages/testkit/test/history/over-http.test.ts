/** Clients over HTTP record what they see: of our service, and of a small server with faults that the checker must find. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { ServeProcess } from "@slotkeeper/testkit/fleet";
import {
  type FairQueueFacts,
  HistoryRecorder,
  judgeHistory,
  type RuleName,
  recordingFetch,
  type Verdict,
} from "@slotkeeper/testkit/history";
import { describe, expect, test } from "vitest";
import { type Fault, SlotServer } from "./slot-server.ts";

const SLOTS = 2;
const FAIR_QUEUE = { maxSlotPerHost: SLOTS, maxSlotPerIp: -1, maxWaitersPerHost: 0, maxWaitMs: 60_000 };
const HOLD_MS = 30;
/** On a busy machine a call may take this long. Then the rules about time judge less, and never wrongly. */
const TRANSIT_MS = 100;
/** A wait is certain for all but the time of two messages. */
const WAITED_MS = 3 * TRANSIT_MS;

interface Play {
  readonly url: string;
  readonly promptMs: number;
  readonly grants: number;
  /** How many clients of each of the two buckets ask again and again. */
  readonly clients?: number;
  /** Whether the first slots are held until every client has certainly waited, on a quick machine too. */
  readonly makesWait?: boolean;
}

/** Closed loops of two buckets until enough slots were granted, or until nothing was granted for too long. */
async function play({ url, promptMs, grants, clients = 4, makesWait = false }: Play): Promise<Verdict> {
  const recorder = new HistoryRecorder();
  const known = { instances: 1, isFresh: true, transitMs: TRANSIT_MS, promptMs };
  recorder.note({ kind: "facts", at: 0, fairQueue: FAIR_QUEUE, ...known });
  const stop = new AbortController();
  let count = 0;
  let lastAt = performance.now();
  const firstCalls: number[] = [];
  const isWaiting = () => firstCalls.length === 2 * clients && performance.now() - (firstCalls.at(-1) ?? 0) > WAITED_MS;
  const loop = async (number: number) => {
    const send = recordingFetch(recorder, `client ${number}`);
    const post = async (call: string, body: object) => {
      const init = { method: "POST", body: JSON.stringify(body), signal: stop.signal };
      return (await (await send(`${url}/api/v0/fairqueue/${call}`, init)).json()) as Record<string, string>;
    };
    firstCalls.push(performance.now());
    while (!stop.signal.aborted) {
      const first = { hostname: "a.example", ipBucket: `b-${number % 2}`, waitMs: 60_000 };
      let answer = await post("acquire", first);
      while (answer["result"] === "pending") answer = await post("acquire", { queryToken: answer["queryToken"] });
      const { slotToken } = answer;
      if (slotToken === undefined) continue;
      lastAt = performance.now();
      if (++count % 4 === 0) await post("renew", { slotToken });
      if (makesWait && count <= SLOTS) while (!isWaiting()) await pause(20);
      await pause(HOLD_MS);
      recorder.note({ kind: "use", slotToken, from: lastAt, until: recorder.now() });
      await post("release", { slotToken });
    }
  };
  const loops = Array.from({ length: 2 * clients }, (_, number) => loop(number).catch(() => undefined));
  while (count < grants && performance.now() - lastAt < 3 * promptMs) await pause(20);
  stop.abort();
  await Promise.all(loops);
  recorder.close();
  return judgeHistory(recorder.lines);
}

/** Runs the service with this configuration. */
async function withService<T>(fairQueue: object, work: (url: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-judged-"));
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ listen: "127.0.0.1:0", logLevel: "warn", fairQueue }));
  const service = await ServeProcess.start(file);
  try {
    return await work(service.url);
  } finally {
    await service.kill();
    rmSync(folder, { recursive: true });
  }
}

const judgedBy = ({ rules }: Verdict) => rules.filter(({ judged }) => judged > 0).map(({ rule }) => rule);

describe("our service", () => {
  test("the rules of slots, waits and shares judge its answers, and find nothing", async () => {
    const verdict = await withService(FAIR_QUEUE, (url) =>
      play({ url, promptMs: 10_000, grants: 150, makesWait: true }),
    );
    expect(verdict.violations).toEqual([]);
    const all = ["HIST1", "HIST2", "HIST3", "HIST4", "HIST5", "HIST6", "HIST7", "HIST8", "HIST9"];
    expect(judgedBy(verdict)).toEqual(all);
  });

  test("the rules of cooldown, minimum hold and breaker do, too", async () => {
    const breaker = { consecutiveErrors: 2, openSeconds: 1 };
    const fairQueue = { maxSlotPerHost: 1, ipCooldownSeconds: 0.2, minSlotHoldMs: 100, breaker };
    const verdict = await withService(fairQueue, (url) => playFailures(url, fairQueue));
    expect(verdict.violations).toEqual([]);
    expect(judgedBy(verdict)).toEqual(expect.arrayContaining(["HIST10", "HIST11", "HIST12", "HIST13"]));
  });
});

/** One client whose upstream fails until the breaker has opened, and works again when it is half open. */
async function playFailures(url: string, fairQueue: FairQueueFacts): Promise<Verdict> {
  const recorder = new HistoryRecorder();
  const known = { instances: 1, isFresh: true, transitMs: TRANSIT_MS, promptMs: 10_000 };
  recorder.note({ kind: "facts", at: 0, fairQueue, ...known });
  const send = recordingFetch(recorder);
  const post = async (call: string, body: object) => {
    const answer = await send(`${url}/api/v0/fairqueue/${call}`, { method: "POST", body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, string>;
  };
  const results: string[] = [];
  for (let successes = 0; successes < 3; ) {
    let answer = await post("acquire", { hostname: "a.example", bucket: "b", waitMs: 5_000 });
    while (answer["result"] === "pending") answer = await post("acquire", { queryToken: answer["queryToken"] });
    results.push(answer["result"] ?? "");
    if (answer["result"] === "granted") {
      const status = results.includes("throttled") ? 200 : 503;
      if (status === 200) successes++;
      const now = Date.now();
      await post("release", { slotToken: answer["slotToken"], status, hitUpstreamAtMs: now, now });
    } else await pause(50);
  }
  recorder.close();
  return judgeHistory(recorder.lines);
}

describe("a small server", () => {
  const FOUND: Record<Fault, { readonly rule: RuleName } & Partial<Play>> = {
    "grants one slot too many": { rule: "HIST1" },
    "gives the same token twice": { rule: "HIST2" },
    "lets fences fall": { rule: "HIST3" },
    "forgets leases": { rule: "HIST5" },
    "ends sessions early": { rule: "HIST5" },
    "loses releases": { rule: "HIST6", promptMs: 1_000 },
    "serves the youngest first": { rule: "HIST7", promptMs: 200, grants: 150 },
    // Long waits: they are certain for all but the time of two messages.
    "serves one bucket first": { rule: "HIST8", grants: 200, clients: 40 },
  };
  const judged = async (fault: Fault | undefined, more: Partial<Play>) => {
    const server = await SlotServer.start(SLOTS, fault);
    try {
      const { violations } = await play({ url: server.url, promptMs: 10_000, grants: 40, ...more });
      return [...new Set(violations.map(({ rule }) => rule))];
    } finally {
      server.stop();
    }
  };

  test("without a fault breaks no rule", async () => {
    expect(await judged(undefined, {})).toEqual([]);
  });

  test.each(Object.entries(FOUND))("that %s is found", async (fault, { rule, ...more }) => {
    expect(await judged(fault as Fault, more)).toContain(rule);
  });
});
