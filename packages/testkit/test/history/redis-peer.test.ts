/**
 * A peer that counts with the clocks of its clients: the checker finds that it grants too much when one of them is wrong.
 * The clients write the same history as those of our service.
 */
import { HistoryRecorder, judgeHistory } from "@slotkeeper/testkit/history";
import { Semaphore } from "redis-semaphore";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { hasRedis, type RedisConnection, RedisServer } from "./redis-server.ts";

const SLOTS = 2;
const LEASE_MS = 10_000;

if (!hasRedis) console.log("Skipped: redis-semaphore needs `redis-server` (Debian: apt-get install redis-server).");

describe.skipIf(!hasRedis)("redis-semaphore", () => {
  let server: RedisServer;
  let connection: RedisConnection;
  beforeAll(async () => {
    server = new RedisServer();
    connection = await server.connect();
  });
  afterAll(async () => {
    connection?.close();
    await server?.stop();
  });

  /** One client after the other asks for a slot and keeps it. The clocks of some are ahead. */
  async function played(hostname: string, clocksAheadMs: readonly number[]) {
    const recorder = new HistoryRecorder();
    recorder.note({ kind: "facts", at: 0, fairQueue: { maxSlotPerHost: SLOTS, maxSlotPerIp: 0 } });
    const options = { lockTimeout: LEASE_MS, refreshInterval: 0, acquireTimeout: 1_000, acquireAttemptsLimit: 1 };
    for (const [client, aheadMs] of clocksAheadMs.entries()) {
      const realNow = Date.now.bind(Date);
      const clock = vi.spyOn(Date, "now").mockImplementation(() => realNow() + aheadMs);
      const semaphore = new Semaphore(connection as never, hostname, SLOTS, options);
      const open = recorder.sent("acquire", { hostname, ipBucket: `b-${client}`, waitMs: 1 }, `client ${client}`);
      const isGranted = await semaphore.tryAcquire();
      clock.mockRestore();
      const granted = { result: "granted", slotToken: semaphore.identifier, leaseMs: LEASE_MS, limit: SLOTS };
      open.answered(200, isGranted ? granted : { result: "pending" });
    }
    return judgeHistory(recorder.lines);
  }

  test("keeps its limit while the clocks of its clients agree", async () => {
    const verdict = await played("agreeing.example", [0, 0, 0]);
    expect(verdict).toMatchObject({ grants: SLOTS, violations: [] });
  });

  test("grants one slot too many to a client whose clock is ahead, and the checker finds it", async () => {
    const { violations } = await played("ahead.example", [0, 0, 60_000]);
    expect(violations).toMatchObject([{ rule: "HIST1", detail: "3 slots of the host are held at once, 2 allowed" }]);
  });
});
