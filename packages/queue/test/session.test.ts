import { drained } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench, type Followed } from "./bench-of-one.ts";

describe("the first call", () => {
  test("is pending without waitMs even if a slot is free, and the next poll gets the slot immediately", async () => {
    const bench = new Bench();
    const session = await bench.begin();
    expect(await bench.queue.poll(session)).toMatchObject({ result: "granted", leaseMs: 30_000 });
  });

  test("with waitMs may be granted immediately, with one call to the store", async () => {
    const bench = new Bench();
    await bench.take();
    expect(bench.calls).toEqual(["commit"]);
  });

  test("with the same requestId gets the same session, even while the first call is in progress", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    await bench.take("z");
    const [one, two] = await Promise.all([bench.ask("a", { requestId: "r" }), bench.ask("a", { requestId: "r" })]);
    const three = await bench.ask("a", { requestId: "r" });
    const ids = [one, two, three].map((answer) => (answer.result === "pending" ? answer.session.id : answer.result));
    expect(new Set(ids).size).toBe(1);
    expect(bench.queue.dump().sessions.pending).toBe(1);
    expect(bench.queue.counts.session_created).toBe(2);
  });

  test("with the requestId of a different bucket gets a session of its own", async () => {
    const bench = new Bench();
    const [one, two] = [await bench.take("a", { requestId: "42" }), await bench.take("b", { requestId: "42" })];
    expect(two).not.toBe(one);
  });

  test("with invalid fields is refused with all of them named, and changes nothing", async () => {
    const bench = new Bench();
    const bad = { host: "", bucket: "b".repeat(256), requestId: "r".repeat(65), waitMs: -1, limit: 2 };
    const refused = bench.queue.begin(bad);
    await expect(refused).rejects.toThrow(TypeError);
    for (const field of Object.keys(bad)) await expect(refused).rejects.toThrow(`Expected \`${field}\` to be`);
    expect(bench.queue.dump()).toMatchObject({ hosts: [], sessions: { total: 0 } });
  });

  test("is refused as overloaded above globalMaxWaiters, with a retry time from the drain rate, at most 30 s", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, globalMaxWaiters: 1 });
    await bench.take("z");
    await bench.begin("a");
    expect(await bench.ask("b")).toEqual({ result: "overloaded", retryAfterMs: 1000 });
    expect(bench.queue.counts.overloaded).toBe(1);
    expect(bench.queue.dump().sessions.pending).toBe(1);
  });
});

describe("a poll", () => {
  test("is held for its window and then reports the state of the session", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, pollWindowMs: 6000 });
    await bench.take("z");
    await bench.want("a");
    const session = await bench.begin("b");
    const poll = bench.queue.poll(session);
    await bench.clock.run(5_999);
    await bench.clock.run(1);
    expect(await poll).toMatchObject({ result: "pending", position: 2, waiters: 2, blockedBy: "host-limit" });
  });

  test("is answered as soon as the state changes, and so is every other open poll of the session", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    const token = await bench.take("z");
    const session = await bench.begin("a");
    const polls = [bench.queue.poll(session), bench.queue.poll(session)];
    await bench.release(token);
    const [one, two] = await Promise.all(polls);
    expect(one).toMatchObject({ result: "granted" });
    expect(two).toEqual(one);
  });

  test("after a lost granted answer returns the same slot", async () => {
    const bench = new Bench();
    const session = await bench.begin();
    const first = await bench.queue.poll(session);
    await bench.clock.run(1_000);
    expect(await bench.queue.poll(session)).toEqual({ ...first, leaseMs: 29_000 });
  });

  test("of an ended session repeats its end, from this instance and from the store", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, defaultGrantedCleanupDelay: 1 });
    await bench.take("z");
    const session = await bench.begin("a");
    expect(bench.queue.cancel(session)).toBe("canceled");
    const ended = { result: "timeout", reason: "canceled" };
    expect(await bench.queue.poll(session)).toEqual(ended);
    await bench.clock.run(2_000);
    expect(bench.queue.dump().sessions.pending).toBe(0);
    expect(await bench.queue.poll(session)).toEqual(ended);
  });

  test("after its slot was released never returns the slot again", async () => {
    const bench = new Bench();
    const session = await bench.begin();
    const answer = await bench.queue.poll(session);
    if (answer.result === "granted") await bench.release(answer.slotToken);
    expect(await bench.queue.poll(session)).toEqual({ result: "timeout", reason: "released" });
  });

  test("whose caller leaves rejects with the caller's reason and leaves nothing behind", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    await bench.take("z");
    const session = await bench.begin("a");
    const gone = new AbortController();
    const poll = bench.queue.poll(session, { signal: gone.signal });
    gone.abort("gone");
    await expect(poll).rejects.toBe("gone");
    expect(bench.queue.dump().hosts[0]?.waiting[0]?.polls).toBe(0);
  });

  test("after the deadline returns timeout, whatever its token contains", async () => {
    const bench = new Bench({ maxWaitMs: 5_000 });
    const session = await bench.begin();
    await bench.clock.run(10_000);
    expect(await bench.queue.poll(session)).toMatchObject({ result: "timeout" });
  });
});

describe("timeouts", () => {
  test("maxWaitMs ends a session inside its held poll", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, maxWaitMs: 2_500 });
    await bench.take("z");
    const followed = await bench.want("a");
    await bench.clock.run(2_499);
    expect(followed.last).toBeUndefined();
    await bench.clock.run(1);
    expect(followed.last).toEqual({ result: "timeout", reason: "deadline" });
    expect(bench.queue.counts.timeout).toBe(1);
  });

  test("sessionIdleSeconds without a poll end a session and free its place", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, sessionIdleSeconds: 3, maxWaitMs: 60_000, zombieTimeoutSeconds: 60 });
    await bench.take("z");
    const session = await bench.begin("a");
    await bench.clock.run(3_001);
    expect(bench.queue.dump().sessions.pending).toBe(0);
    expect(await bench.queue.poll(session)).toEqual({ result: "timeout", reason: "idle" });
    expect((await bench.snapshot())?.waiting).toBe(0);
  });
});

describe("collecting a grant", () => {
  test("a session whose client is absent gets no slot, and keeps its place", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, collectMs: 1_000 });
    const token = await bench.take("z");
    const away = await bench.begin("a");
    const present = await bench.want("b");
    await bench.clock.run(1_500);
    await bench.release(token);
    expect(present.isGranted).toBe(true);
    const back = bench.follow(away);
    await drained();
    await bench.release(present.slotToken);
    expect(back.isGranted).toBe(true);
  });

  test("a slot that is not fetched within collectMs goes to the next waiter, and the session returns to its place", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, collectMs: 1_000 });
    const token = await bench.take("z");
    const vanished = await bench.begin("a");
    const next = await bench.want("b");
    await bench.release(token);
    expect(next.isGranted).toBe(false);
    await bench.clock.run(1_000);
    expect(next.isGranted).toBe(true);
    expect(bench.ofType("uncollected")).toHaveLength(1);
    const back = bench.follow(vanished);
    await bench.release(next.slotToken);
    expect(back.isGranted).toBe(true);
    expect(bench.queue.counts.granted).toBe(3);
  });

  test("an absent client costs the host one collectMs, not a whole lease", async () => {
    const bench = new Bench({ maxSlotPerHost: 1, collectMs: 1_000, zombieTimeoutSeconds: 30 });
    await bench.begin("ghost");
    await bench.clock.run(1_000);
    expect(await bench.held()).toBe(0);
  });
});

describe("cancel", () => {
  test("gives up the place of a waiting session", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    const token = await bench.take("z");
    const first = await bench.want("a");
    const second = await bench.want("b");
    expect(bench.queue.cancel(first.session)).toBe("canceled");
    await drained();
    expect(bench.queue.cancel(first.session)).toBe("noop");
    await bench.release(token);
    expect(first.last).toEqual({ result: "timeout", reason: "canceled" });
    expect(second.isGranted).toBe(true);
  });

  test("within defaultGrantedCleanupDelay of its grant gives a slot back; later it is in use and stays", async () => {
    const bench = new Bench({ maxSlotPerHost: 2, defaultGrantedCleanupDelay: 5 });
    const [early, late] = [await bench.want("a"), await bench.want("b")];
    await bench.clock.run(4_999);
    expect(bench.queue.cancel(early.session)).toBe("canceled");
    await bench.clock.run(2);
    expect(bench.queue.cancel(late.session)).toBe("noop");
    expect(await bench.held()).toBe(1);
    await bench.clock.run(3_000);
    expect(bench.queue.cancel(late.session)).toBe("noop");
    expect(await bench.queue.renew(late.slotToken)).toBeDefined();
    expect(await bench.queue.poll(early.session)).toEqual({ result: "timeout", reason: "canceled" });
    expect(await bench.queue.poll(late.session)).toMatchObject({ result: "granted", slotToken: late.slotToken });
    expect(bench.queue.counts).toMatchObject({ session_created: 2, granted: 2, canceled: 1 });
  });

  test.each([
    { when: "in time", calledAfterMs: 4_000, left: 0 },
    { when: "too late", calledAfterMs: 6_000, left: 1 },
  ])("at an instance that does not know the session goes by the time of the call: $when", async (call) => {
    const one = new Bench({ maxSlotPerHost: 1, pollIntervalMs: 2_000 });
    const two = new Bench({ maxSlotPerHost: 1, pollIntervalMs: 2_000 }, one);
    const { session } = await one.want("a");
    await one.clock.run(call.calledAfterMs);
    two.isStoreDown = true;
    expect(two.queue.cancel(session)).toBe("gone");
    await one.clock.run(1_500);
    two.isStoreDown = false;
    await one.clock.run(2_000);
    expect(await one.held()).toBe(call.left);
    expect(two.queue.counts.canceled).toBe(1 - call.left);
  });

  test("is noop at another instance that knows the slot and its age", async () => {
    const one = new Bench({ maxSlotPerHost: 1 });
    const two = new Bench({ maxSlotPerHost: 1 }, one);
    const { session } = await one.want("a");
    await two.want("b");
    await one.clock.run(8_000);
    expect(two.queue.cancel(session)).toBe("noop");
    expect(await one.held()).toBe(1);
  });

  test("of a session that is just being polled again does not end its slot later or without its minimum hold", async () => {
    const bench = new Bench({ maxSlotPerHost: 2, minSlotHoldMs: 4_000, smoothReleaseIntervalMs: 0 }, undefined, true);
    const [early, late] = [await bench.want("a"), await bench.want("b")];
    const again = async ({ session }: Followed) => {
      const stalled: (() => void)[] = [];
      bench.stalled = stalled;
      void bench.queue.poll(session);
      bench.queue.cancel(session);
      await drained();
      bench.stalled = undefined;
      for (const goOn of stalled) goOn();
      await drained();
    };
    await bench.clock.run(1_000);
    await again(early);
    expect(await bench.held()).toBe(2);
    await bench.clock.run(6_000);
    await again(late);
    expect(await bench.held()).toBe(1);
    expect(await bench.queue.renew(late.slotToken)).toBeDefined();
  });

  test("of a session of another instance works through the store", async () => {
    const one = new Bench({ maxSlotPerHost: 1 });
    const two = new Bench({ maxSlotPerHost: 1 }, one);
    await one.take("z");
    const followed = await one.want("a");
    expect(two.queue.cancel(followed.session)).toBe("gone");
    await one.clock.run(1_100);
    expect(followed.last).toEqual({ result: "timeout", reason: "canceled" });
  });

  test("does not wait while the store decides, and a slot that is granted meanwhile is returned", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    await bench.release(await bench.take("z"));
    bench.stalled = [];
    const session = await bench.begin("a");
    expect(bench.stalled).toHaveLength(1);
    expect(bench.queue.cancel(session)).toBe("canceled");
    await drained();
    const resume = bench.stalled;
    bench.stalled = undefined;
    for (const go of resume) go();
    await drained();
    expect(await bench.held()).toBe(0);
    expect(bench.queue.dump()).toMatchObject({ unsent: 0, sessions: { pending: 0 } });
  });
});

describe("a caller that leaves", () => {
  test("during its first call is released from the wait, with its own reason", async () => {
    const bench = new Bench();
    bench.stalled = [];
    const leaving = new AbortController();
    const asked = bench.ask("a", { waitMs: 5_000, signal: leaving.signal });
    await drained();
    leaving.abort("gone home");
    const resume = bench.stalled;
    bench.stalled = undefined;
    for (const go of resume) go();
    await expect(asked).rejects.toBe("gone home");
  });

  test("before the call creates no session", async () => {
    const bench = new Bench();
    const asked = bench.ask("a", { waitMs: 5_000, signal: AbortSignal.abort("gone home") });
    await expect(asked).rejects.toBe("gone home");
    expect(bench.queue.dump()).toMatchObject({ hosts: [], sessions: { total: 0 } });
  });
});

describe("moving between instances", () => {
  test("a session keeps its place when its instance is restarted", async () => {
    const one = new Bench({ maxSlotPerHost: 1 });
    const token = await one.take("z");
    const first = await one.begin("a");
    one.queue.close();
    await one.clock.run(100);
    const two = new Bench({ maxSlotPerHost: 1 }, one);
    const second = await two.want("b");
    const moved = two.follow(first);
    await drained();
    await two.release(token, { host: "h" });
    expect(moved.isGranted).toBe(true);
    expect(second.isGranted).toBe(false);
  });

  test("a session granted at another instance gets the same slot, and neither instance takes it back", async () => {
    const one = new Bench({ maxSlotPerHost: 1 });
    const two = new Bench({ maxSlotPerHost: 1 }, one);
    const session = await one.begin("a");
    const answer = await two.queue.poll(session);
    expect(answer).toMatchObject({ result: "granted" });
    await one.clock.run(5_000);
    expect(await one.held()).toBe(1);
    expect(one.queue.dump().sessions.pending).toBe(0);
  });
});

describe("a store that fails", () => {
  test("keeps sessions pending, including first calls, and the answers report it", async () => {
    const bench = new Bench({ maxSlotPerHost: 1 });
    bench.isStoreDown = true;
    const followed = await bench.want("a");
    await bench.clock.run(6_000);
    expect(followed.last).toMatchObject({ result: "pending", blockedBy: "store" });
    bench.isStoreDown = false;
    await bench.clock.run(500);
    expect(followed.isGranted).toBe(true);
  });

  test("is asked again at the next poll interval, not at the next event", async () => {
    const bench = new Bench();
    bench.isStoreDown = true;
    for (let count = 0; count < 10; count++) await bench.begin(`b${count}`);
    expect(bench.calls.filter((call) => call === "commit")).toHaveLength(1);
    await bench.clock.run(500);
    expect(bench.calls.filter((call) => call === "commit")).toHaveLength(2);
  });

  test("that does not answer delays a first call by at most one second", async () => {
    const bench = new Bench();
    bench.stalled = [];
    const asked = bench.ask("a");
    await bench.clock.run(1_000);
    expect(await asked).toMatchObject({ result: "pending", blockedBy: "store" });
  });
});

test("when all sessions have ended, no session, host, timer or listener is left", async () => {
  const bench = new Bench({ maxSlotPerHost: 1 });
  const token = await bench.take("z");
  for (const bucket of ["a", "b", "c"]) await bench.want(bucket);
  await bench.release(token);
  await bench.clock.run(300_000);
  expect(bench.queue.dump()).toMatchObject({ sessions: { total: 0 }, hosts: [], unsent: 0 });
  expect(bench.clock.pending).toBe(0);
});

test("closing answers every held poll and stops the clock", async () => {
  const bench = new Bench({ maxSlotPerHost: 1 });
  await bench.take("z");
  const poll = bench.queue.poll(await bench.begin("a"));
  bench.queue.close();
  expect(await poll).toMatchObject({ result: "pending" });
  expect(bench.clock.pending).toBe(0);
});

test("counters add up: each session either waits or has ended, once", async () => {
  const bench = new Bench({ maxSlotPerHost: 1, maxWaitMs: 3_000 });
  await bench.take("z");
  const followed = await Promise.all(["a", "b", "c"].map((bucket) => bench.want(bucket)));
  for (let round = 0; round < 20; round++)
    await bench.queue.poll(followed[0]?.session ?? (await bench.begin()), { waitMs: 0 });
  bench.queue.reconfigure({ maxSlotPerHost: 1 });
  if (followed[1] !== undefined) bench.queue.cancel(followed[1].session);
  await bench.clock.run(5_000);
  const { session_created, granted, timeout, canceled, throttled } = bench.queue.counts;
  expect(session_created).toBe(4);
  expect(granted + timeout + canceled + throttled).toBe(4);
  expect(bench.queue.dump().sessions.pending).toBe(0);
});
