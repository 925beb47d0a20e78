import type { PollAnswer } from "@slotkeeper/protocol";
import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** The book is the only truth about a session: SESSIONS1 to SESSIONS4 of `sessions.ts`, ENDS1 and ENDS2 of `ends.ts`. */

const ONE_SLOT = { maxSlotPerHost: 1, collectMs: 1_000 } as const;

function fleet(config: object): [one: Bench, two: Bench] {
  const one = new Bench(config, undefined, true);
  return [one, new Bench(config, one)];
}

/** Lets the store accept commits, and keeps their answers until the returned function is called. */
function answersLate(bench: Bench): () => Promise<void> {
  const late: (() => void)[] = [];
  bench.late = late;
  return async () => {
    bench.late = undefined;
    for (const answered of late) answered();
    await drained();
  };
}

/** The grant is committed, but the caller of the poll left before this instance knew of it. */
async function undelivered(bench: Bench) {
  const session = await bench.begin("a");
  const goOn = answersLate(bench);
  const leaving = new AbortController();
  const left = bench.queue.poll(session, { signal: leaving.signal }).catch(() => "left");
  await drained();
  leaving.abort();
  expect(await left).toBe("left");
  await goOn();
  expect(await bench.held()).toBe(1);
  return session;
}

describe("a call while a commit is on its way (SESSIONS1)", () => {
  test("is answered with that commit", async () => {
    const bench = new Bench(ONE_SLOT);
    const session = await bench.begin("a");
    const goOn = answersLate(bench);
    const polls = [bench.queue.poll(session)];
    await drained();
    const answers: PollAnswer[] = [];
    void bench.queue.poll(session, { waitMs: 0 }).then((answer) => answers.push(answer));
    await drained();
    expect(answers).toEqual([]);
    await goOn();
    expect(answers).toMatchObject([{ result: "granted" }]);
    expect(await polls[0]).toEqual(answers[0]);
  });

  test("is answered after a second as in an outage, also if its window ends meanwhile", async () => {
    const bench = new Bench(ONE_SLOT);
    const session = await bench.begin("a");
    const goOn = answersLate(bench);
    const poll = bench.queue.poll(session, { waitMs: 500 });
    await bench.clock.run(1_500);
    expect(await poll).toMatchObject({ result: "pending", blockedBy: "store" });
    await goOn();
  });
});

describe("a slot (SESSIONS2)", () => {
  test("is pending for a repeated first call that does not wait, and the next poll gets it", async () => {
    const bench = new Bench(ONE_SLOT);
    const request = { requestId: "r" };
    const slotToken = await bench.take("a", request);
    const again = await bench.ask("a", request);
    if (again.result !== "pending") throw new Error(`Expected pending, got ${again.result}`);
    expect(await bench.queue.poll(again.session)).toMatchObject({ result: "granted", slotToken });
    expect(bench.queue.counts).toMatchObject({ session_created: 1, granted: 1 });
  });

  test("is found once more after the deadline, as long as its lease lives", async () => {
    const [one, two] = fleet({ ...ONE_SLOT, maxWaitMs: 2_000 });
    const session = await one.begin("a");
    const granted = await one.queue.poll(session);
    if (granted.result !== "granted") throw new Error(`Expected a slot, got ${granted.result}`);
    await one.clock.run(5_000);
    for (const { queue } of [two, one])
      expect(await queue.poll(session)).toMatchObject({ result: "granted", slotToken: granted.slotToken });
    await two.release(granted.slotToken);
    await one.clock.run(100);
    expect(await one.queue.poll(session)).toEqual({ result: "timeout", reason: "deadline" });
  });

  test("that ended elsewhere is not answered to a poll that came after its end, while the commit of its grant is still unanswered here", async () => {
    const [one, two] = fleet(ONE_SLOT);
    const session = await one.begin("a");
    const goOn = answersLate(one);
    const before = one.queue.poll(session);
    await drained();
    const granted = await two.queue.poll(session);
    if (granted.result !== "granted") throw new Error(`Expected a slot, got ${granted.result}`);
    await two.release(granted.slotToken);
    await one.clock.run(10);
    const after = one.queue.poll(session);
    await goOn();
    await one.clock.run(10);
    // The first poll came before the end.
    expect(await before).toMatchObject({ result: "granted", slotToken: granted.slotToken });
    expect(await after).toEqual({ result: "timeout", reason: "released" });
  });

  test("is not known in an outage: also a session that has one gets `pending`", async () => {
    const bench = new Bench(ONE_SLOT, undefined, true);
    const session = await bench.begin("a");
    expect(await bench.queue.poll(session)).toMatchObject({ result: "granted" });
    bench.isStoreDown = true;
    const poll = bench.queue.poll(session);
    await bench.clock.run(6_000);
    expect(await poll).toMatchObject({ result: "pending", blockedBy: "store" });
  });
});

describe("the deadline (SESSIONS3)", () => {
  test("ends a session that returned to its place, if it passes before the store has answered the return", async () => {
    const bench = new Bench({ ...ONE_SLOT, maxWaitMs: 2_000 });
    await undelivered(bench);
    const goOn = answersLate(bench);
    await bench.clock.run(2_500);
    await goOn();
    await bench.clock.run(100);
    expect(bench.queue.counts).toMatchObject({ session_created: 1, granted: 1, returned: 1, timeout: 1 });
    expect(bench.queue.dump()).toMatchObject({ pending: 0, unsent: 0 });
  });

  test("ends a held poll, and the lease that is being committed is given back and counted", async () => {
    const bench = new Bench({ ...ONE_SLOT, maxWaitMs: 2_000 });
    const session = await bench.begin("a");
    await bench.clock.run(1_500);
    const goOn = answersLate(bench);
    const poll = bench.queue.poll(session);
    await bench.clock.run(500);
    expect(await poll).toEqual({ result: "timeout", reason: "deadline" });
    expect(await bench.held()).toBe(1);
    await goOn();
    expect(await bench.held()).toBe(0);
    expect(bench.queue.counts).toMatchObject({ session_created: 1, granted: 1, returned: 1, timeout: 1 });
    expect(await bench.queue.poll(session)).toEqual({ result: "timeout", reason: "deadline" });
  });
});

describe("a lease that no call took (SESSIONS4)", () => {
  test("goes to the next waiter after collectMs, and its session returns to its place", async () => {
    const bench = new Bench(ONE_SLOT);
    const session = await undelivered(bench);
    const next = await bench.want("b");
    await bench.clock.run(1_000);
    expect(next.isGranted).toBe(true);
    expect(bench.queue.counts).toMatchObject({ session_created: 2, granted: 2, returned: 1 });
    const back = bench.follow(session);
    await bench.release(next.slotToken);
    expect(back.isGranted).toBe(true);
    expect(bench.queue.counts).toMatchObject({ session_created: 2, granted: 3, returned: 1 });
  });

  test("is free at once if its session is cancelled, without a minimum hold", async () => {
    const bench = new Bench({ ...ONE_SLOT, minSlotHoldMs: 5_000 });
    const session = await undelivered(bench);
    expect(bench.queue.cancel(session)).toBe("canceled");
    await drained();
    expect(await bench.held()).toBe(0);
    expect(bench.queue.counts).toMatchObject({ granted: 1, returned: 1, canceled: 1 });
  });

  test("stays with the client that finds it, here or at another instance", async () => {
    for (const at of [0, 1]) {
      const benches = fleet(ONE_SLOT);
      const session = await undelivered(benches[0]);
      expect(await benches[at]?.queue.poll(session)).toMatchObject({ result: "granted" });
      await benches[0].clock.run(5_000);
      expect(await benches[0].held()).toBe(1);
      expect(benches[0].queue.counts).toMatchObject({ granted: 1, returned: 0 });
    }
  });
});

describe("a session", () => {
  test("that is begun again with the same name keeps its first arrival", async () => {
    const [one, two] = fleet(ONE_SLOT);
    await one.take("z");
    const first = await one.begin("a", { sessionId: "s" });
    await one.clock.run(1_000);
    void two.ask("a", { sessionId: "s" });
    await one.clock.run(100);
    const answer = await two.queue.poll(first, { waitMs: 0 });
    expect(answer).toMatchObject({ result: "pending", session: { arrivedAt: first.arrivedAt } });
    expect(one.queue.counts.session_created + two.queue.counts.session_created).toBe(2);
  });

  test("begins once, even if its instance was considered dead and the session joins again", async () => {
    const [one, two] = fleet({ ...ONE_SLOT, maxWaitMs: 60_000 });
    await Promise.all([one.queue.start(), two.queue.start()]);
    await one.take("z");
    await one.want("w");
    const session = await two.begin("a");
    await one.clock.run(500);
    two.queue.close();
    await one.clock.run(8_000);
    expect((await one.snapshot())?.waiting).toBe(1);
    const back = one.follow(session);
    await one.clock.run(500);
    expect((await one.snapshot())?.waiting).toBe(2);
    expect(back.isGranted).toBe(false);
    expect(one.queue.counts.session_created + two.queue.counts.session_created).toBe(3);
  });

  test("leaves no entry behind when it has its slot, and counts for globalMaxWaiters only while it waits", async () => {
    const bench = new Bench({ maxSlotPerHost: 5, maxSlotPerIp: -1, globalMaxWaiters: 1 });
    for (let at = 0; at < 5; at++) await bench.take("a");
    expect(bench.queue.overview().pending).toBe(0);
    expect(bench.queue.sessions()).toMatchObject({ total: 5, pending: 0, granted: 5 });
  });
});
