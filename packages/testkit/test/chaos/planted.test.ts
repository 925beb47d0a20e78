import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChaosClient, History, judgeRun } from "@slotkeeper/testkit/chaos";
import { ServeProcess } from "@slotkeeper/testkit/fleet";
import { afterAll, beforeAll, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "slotkeeper-planted-"));
const FAIR_QUEUE = { maxSlotPerHost: 1, zombieTimeoutSeconds: 1, maxWaitMs: 60_000 };
const PLAN = { host: "planted.example", holdMs: 50, pauseMs: 0 };
let service: ServeProcess;

beforeAll(async () => {
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ listen: "127.0.0.1:0", logLevel: "warn", fairQueue: FAIR_QUEUE }));
  service = await ServeProcess.start(file);
}, 180_000);
afterAll(async () => {
  await service?.kill();
  rmSync(folder, { recursive: true });
});

/** Two clients share one slot of a real service until it has been granted a number of times. */
async function play({ overstays }: { overstays: boolean }): Promise<History> {
  const history = new History();
  const clients = ["a", "b"].map((bucket) => new ChaosClient(service.url, PLAN, bucket, history, Math.random));
  if (overstays && clients[0] !== undefined) clients[0].overstays = true;
  const running = clients.map((client) => client.run());
  await expect.poll(() => history.grants, { timeout: 20_000 }).toBeGreaterThan(12);
  for (const client of clients) client.stop();
  await Promise.all(running);
  return history;
}

const judge = ({ recorder }: History) => judgeRun(recorder.lines, { fairQueue: FAIR_QUEUE, instances: 1 });

test("clients that keep the contract break no rule", async () => {
  const verdict = judge(await play({ overstays: false }));
  expect(verdict.violations).toEqual([]);
  expect(verdict.grants).toBeGreaterThan(12);
});

test("a client that uses its slot after its lease ended is found in the history of a live run", async () => {
  const { violations } = judge(await play({ overstays: true }));
  expect(violations.map(({ rule }) => rule)).toContain("HIST9");
});
