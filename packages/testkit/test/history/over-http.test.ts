/** Clients over HTTP record what they see: of our service, and of a small server with faults that the checker must find. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { buildCommand, ServeProcess } from "@slotkeeper/testkit/fleet";
import {
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

interface Play {
  readonly url: string;
  readonly promptMs: number;
  readonly grants: number;
  /** How many clients of each of the two buckets ask again and again. */
  readonly clients?: number;
}

/** Closed loops of two buckets until enough slots were granted, or until nothing was granted for too long. */
async function play({ url, promptMs, grants, clients = 4 }: Play): Promise<Verdict> {
  const recorder = new HistoryRecorder();
  const known = { instances: 1, isFresh: true, transitMs: TRANSIT_MS, promptMs };
  recorder.note({ kind: "facts", at: 0, fairQueue: FAIR_QUEUE, ...known });
  const stop = new AbortController();
  let count = 0;
  let lastAt = performance.now();
  const loop = async (number: number) => {
    const send = recordingFetch(recorder, `client ${number}`);
    const post = async (call: string, body: object) => {
      const init = { method: "POST", body: JSON.stringify(body), signal: stop.signal };
      return (await (await send(`${url}/api/v0/fairqueue/${call}`, init)).json()) as Record<string, string>;
    };
    while (!stop.signal.aborted) {
      const first = { hostname: "a.example", ipBucket: `b-${number % 2}`, waitMs: 60_000 };
      let answer = await post("acquire", first);
      while (answer["result"] === "pending") answer = await post("acquire", { queryToken: answer["queryToken"] });
      const { slotToken } = answer;
      if (slotToken === undefined) continue;
      lastAt = performance.now();
      if (++count % 4 === 0) await post("renew", { slotToken });
      await pause(HOLD_MS);
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

test("our service: the rules judge its answers, and find nothing", { timeout: 120_000 }, async () => {
  buildCommand();
  const folder = mkdtempSync(join(tmpdir(), "slotkeeper-judged-"));
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ listen: "127.0.0.1:0", logLevel: "warn", fairQueue: FAIR_QUEUE }));
  const service = await ServeProcess.start(file);
  try {
    const { violations, rules } = await play({ url: service.url, promptMs: 10_000, grants: 150 });
    expect(violations).toEqual([]);
    const judged = rules.filter((rule) => rule.judged > 0).map(({ rule }) => rule);
    // The rules about waits and shares judge only what takes longer than on a quick machine.
    expect(judged).toEqual(expect.arrayContaining(["HIST1", "HIST2", "HIST3", "HIST4", "HIST5", "HIST7"]));
  } finally {
    await service.kill();
    rmSync(folder, { recursive: true });
  }
});

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
