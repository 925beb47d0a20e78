import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** One slot with a holder that does not matter for these tests: all other sessions wait. */
async function crowded(config: object): Promise<Bench> {
  const bench = new Bench({ maxSlotPerHost: 1, maxWaitersPerHost: 0, ...config });
  await bench.take("holder");
  return bench;
}

async function begin(bench: Bench, bucket: string, count: number): Promise<string[]> {
  const results: string[] = [];
  for (let at = 0; at < count; at++) results.push((await bench.ask(bucket)).result);
  return results;
}

const admitted = (results: readonly string[]) => results.filter((result) => result === "pending").length;

describe("sessions of one bucket", () => {
  test("QUOTA1: do not exceed their share while others wait", async () => {
    const bench = await crowded({ globalMaxWaiters: 10 });
    expect(admitted(await begin(bench, "other", 1))).toBe(1);
    expect(admitted(await begin(bench, "greedy", 10))).toBe(5);
    expect(admitted(await begin(bench, "third", 10))).toBe(4);
  });

  test("QUOTA2: beyond the share do not keep other buckets out: others are admitted as if the bucket had only its share", async () => {
    const bench = await crowded({ globalMaxWaiters: 10 });
    expect(admitted(await begin(bench, "greedy", 20))).toBe(10);
    expect(admitted(await begin(bench, "honest", 3))).toBe(3);
    expect(admitted(await begin(bench, "greedy", 1))).toBe(0);
    expect(admitted(await begin(bench, "late", 10))).toBe(2);
    expect(bench.queue.dump().sessions.pending).toBe(15);
  });

  test("QUOTA3: without a bucket are refused only when all places are taken, and keep no bucket out", async () => {
    const bench = await crowded({ globalMaxWaiters: 10 });
    expect(admitted(await begin(bench, "other", 1))).toBe(1);
    expect(admitted(await begin(bench, "", 20))).toBe(9);
    expect(admitted(await begin(bench, "honest", 3))).toBe(3);
  });

  test("stop counting, whichever way they end", async () => {
    const bench = await crowded({ globalMaxWaiters: 4 });
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all([bench.ask("a"), bench.ask("a"), bench.ask("b"), bench.ask("b")]);
      expect(answers.map(({ result }) => result)).toEqual(["pending", "pending", "pending", "pending"]);
      for (const answer of answers) if (answer.result === "pending") bench.queue.cancel(answer.session);
      await drained();
    }
  });

  test("may take all places at 100 percent: first come, first served", async () => {
    const bench = await crowded({ globalMaxWaiters: 10, maxSessionsPerBucketPercent: 100 });
    expect(admitted(await begin(bench, "greedy", 20))).toBe(10);
    expect(admitted(await begin(bench, "honest", 1))).toBe(0);
  });

  test.each([0, -1, 101, "50", Number.NaN])("a share of %j is refused", (maxSessionsPerBucketPercent) => {
    expect(() => new Bench({ maxSessionsPerBucketPercent } as object)).toThrow(/maxSessionsPerBucketPercent/);
  });
});
