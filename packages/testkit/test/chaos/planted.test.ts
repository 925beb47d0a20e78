import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ChaosClient, History, judgeRun } from "@slotkeeper/testkit/chaos";
import { ServeProcess } from "@slotkeeper/testkit/fleet";
import { CONSTRAINED_HOST, CONSTRAINTS, demandOf } from "@slotkeeper/testkit/load";
import { afterAll, beforeAll, expect, test } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "slotkeeper-planted-"));
/** The budgets refill fast, so that the slots are what requests wait for. */
const FAST = { limit: 24, perSeconds: 0.1 };
const { keys } = CONSTRAINTS;
const CONSTRAINED = {
  ...CONSTRAINTS,
  // Longer than a poll waits: the client counts its lease from the sending of the poll.
  zombieTimeoutSeconds: 30,
  budgets: { tokens: FAST },
  keys: { ...keys, tenant: { ...keys.tenant, budgets: { tokens: FAST } } },
};
const FAIR_QUEUE = {
  maxSlotPerHost: 1,
  zombieTimeoutSeconds: 1,
  maxWaitMs: 60_000,
  hosts: { [CONSTRAINED_HOST]: CONSTRAINED },
};
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
  await playUntil(12, history, clients);
  return history;
}

async function playUntil(grants: number, history: History, clients: readonly ChaosClient[]): Promise<void> {
  const running = clients.map((client) => client.run());
  await expect.poll(() => history.grants, { timeout: 20_000 }).toBeGreaterThan(grants);
  for (const client of clients) client.stop();
  await Promise.all(running);
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

test("limits of keys, classes and budgets are judged in the history of a live run", async () => {
  const history = new History();
  const plan = { ...PLAN, host: CONSTRAINED_HOST, demand: demandOf };
  const buckets = Array.from({ length: 14 }, (_, n) => `b${n % 4}`);
  const clients = buckets.map((bucket) => new ChaosClient(service.url, plan, bucket, history, Math.random));
  await playUntil(150, history, clients);
  const found = (limits: object) => {
    const hosts = { [CONSTRAINED_HOST]: { ...CONSTRAINED, ...limits } };
    const { violations } = judgeRun(history.recorder.lines, { fairQueue: { ...FAIR_QUEUE, hosts }, instances: 1 });
    return new Set(
      violations.map(({ rule, detail }) => `${rule} ${/key \w+|class "\w+"|budget \w+/.exec(detail)?.[0]}`),
    );
  };
  const { user, tenant } = CONSTRAINED.keys;
  expect([...found({})]).toEqual([]);
  expect([...found({ keys: { user: { slots: user.slots - 1 }, tenant } })]).toEqual(["HIST1 key user"]);
  expect([...found({ keys: { user, tenant: { ...tenant, slots: tenant.slots - 1 } } })]).toEqual(["HIST1 key tenant"]);
  const classes = { ...CONSTRAINED.classes, batch: { weight: 1, ceiling: 1 } };
  expect([...found({ classes })]).toEqual(['HIST1 class "batch"']);
  expect([...found({ budgets: { tokens: { limit: 24, perSeconds: 10 } } })]).toEqual(["HIST14 budget tokens"]);
});
