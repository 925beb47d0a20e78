import type { SessionClaims } from "@slotkeeper/protocol";
import { describe, expect, test } from "vitest";
import { SlowWorld } from "./slow-world.ts";

/**
 * However slow the store is, and whenever the deadline of a session passes meanwhile:
 *   ONCE1 The clients of a session get at most one slot.
 *   ONCE2 A slot that no client got is not held: it is released when the store answers, not when its lease ends.
 */

const MAX_WAIT_MS = 10_000;
/** Longer than a store keeps an end after its deadline. */
const PAST_ALL_MEMORY_MS = 5_000;

async function granted(world: SlowWorld, more: object = {}): Promise<{ slotToken: string; session: SessionClaims }> {
  const answer = await world.settled(world.queue.begin({ host: "h", bucket: "a", waitMs: 50, ...more }));
  if (answer.result !== "granted") throw new Error(`Expected a slot, got ${JSON.stringify(answer)}`);
  return answer;
}

describe("a commit that arrives after the deadline of its session", () => {
  test("grants no second slot, even if the process was paused and the store has forgotten the first (ONCE1)", async () => {
    const world = new SlowWorld({ maxWaitMs: MAX_WAIT_MS });
    const { slotToken, session } = await granted(world);
    world.queue.release({ slotToken });
    await world.run(MAX_WAIT_MS - 200);
    const late = world.queue.poll(session);
    // The poll has arrived, but its cycle has not run. The process is paused until the deadline has passed and the
    // store has forgotten the end.
    world.standStill(PAST_ALL_MEMORY_MS);
    expect(await world.settled(late)).toMatchObject({ result: "timeout" });
    await world.run(1_000);
    expect(await world.held()).toEqual([]);
  });

  test.each([{ isAnswerLost: false }, { isAnswerLost: true }])(
    "leaves no slot that its client never got, even if the session had ended before the commit (ONCE2; $isAnswerLost)",
    async (lost) => {
      const world = new SlowWorld({ maxWaitMs: 500 });
      world.delays = ({ operation }) => (operation === "commit" ? { beforeMs: 900, ...lost } : {});
      const answer = world.queue.begin({ host: "h", bucket: "a", waitMs: 6_000 });
      await world.run(910);
      expect((await answer).result).toBe("timeout");
      expect(world.grants.size).toBe(1);
      world.delays = () => ({});
      await world.run(1_000);
      expect(await world.held()).toEqual([]);
    },
  );

  test("is refused if it is more than a second late (ONCE2)", async () => {
    const world = new SlowWorld({ maxWaitMs: MAX_WAIT_MS });
    world.delays = ({ operation }) => ({ beforeMs: operation === "commit" ? MAX_WAIT_MS + PAST_ALL_MEMORY_MS : 0 });
    const answer = world.queue.begin({ host: "h", bucket: "a", waitMs: 6_000 });
    await world.run(MAX_WAIT_MS + PAST_ALL_MEMORY_MS + 10);
    expect((await answer).result).toBe("pending");
    world.delays = () => ({});
    await world.run(1_000);
    expect(world.grants.size).toBe(0);
  });
});

describe("a session that the breaker ends while the store decides about it", () => {
  test.each([{ isAnswerLost: false }, { isAnswerLost: true }])("keeps no slot (ONCE2; $isAnswerLost)", async (lost) => {
    const world = new SlowWorld({ breaker: { consecutiveErrors: 1, minSamples: 1 } });
    world.delays = ({ operation }) => (operation === "commit" ? { afterMs: 300, ...lost } : {});
    const answer = world.queue.begin({ host: "h", bucket: "a", waitMs: 6_000 });
    await world.run(100);
    expect(world.grants.size).toBe(1);
    void world.queue.report({ host: "h", status: 503 });
    await world.run(100);
    world.delays = () => ({});
    await world.run(2_000);
    const granted = (await answer).result === "granted" ? 1 : 0;
    expect(await world.held()).toHaveLength(granted);
  });
});
