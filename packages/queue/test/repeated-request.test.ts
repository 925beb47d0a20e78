import type { BeginAnswer } from "@slotkeeper/protocol";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

const SAME = { requestId: "r", sessionId: "s" };

function granted(answer: BeginAnswer) {
  if (answer.result !== "granted") throw new Error(`Expected a slot, got ${JSON.stringify(answer)}`);
  return answer;
}

describe("repeating a first call after its session was forgotten here", () => {
  test("does not take the slot from its holder, even if no call fetches the second answer, and makes no more store calls than a poll", async () => {
    const bench = new Bench();
    const slotToken = await bench.take("a", SAME);
    await bench.clock.run(6_000);
    await bench.ask("a", SAME);
    const calls = bench.calls.length;
    await bench.clock.run(3_000);
    expect(await bench.queue.renew(slotToken)).toBeDefined();
    expect(bench.calls.length - calls).toBeLessThan(20);
  });

  test("grants no second slot between the two deadlines", async () => {
    const bench = new Bench({ maxWaitMs: 10_000 });
    const first = granted(await bench.ask("a", { ...SAME, waitMs: 1 }));
    await bench.clock.run(6_000);
    const again = granted(await bench.ask("a", { ...SAME, waitMs: 1 }));
    expect(again.slotToken).toBe(first.slotToken);
    await bench.release(first.slotToken);
    await bench.clock.run(7_000);
    expect(await bench.queue.poll(again.session)).toEqual({ result: "timeout", reason: "released" });
  });
});

test("repeating a first call while its session waits here writes nothing", async () => {
  const bench = new Bench({ maxSlotPerHost: 1, maxWaitMs: 10_000 });
  await bench.take("a");
  await bench.want("b", SAME);
  const commits = bench.commits.length;
  const again = bench.ask("b", { ...SAME, waitMs: 50 });
  await bench.clock.run(60);
  expect((await again).result).toBe("pending");
  expect(bench.commits.length).toBe(commits);
});
