import type { BeginAnswer, FairQueueConfig, PollAnswer } from "@slotkeeper/protocol";
import { FairQueue, MemoryStore, type QueueEvent } from "@slotkeeper/queue";
import { drained, SkewedClock, VirtualClock } from "@slotkeeper/testkit/simulator";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

/** Two instances over one store with its own clock. */
function fleet(config: FairQueueConfig): [one: Bench, two: Bench] {
  const one = new Bench(config, undefined, true);
  return [one, new Bench(config, one)];
}

/** One instance of several, with a clock of its own. */
function instanceOf(name: string, store: MemoryStore, clock: SkewedClock, events: QueueEvent[] = []): FairQueue {
  let ids = 0;
  return new FairQueue({
    store,
    clock,
    newSessionId: () => `${name}-${ids++}`,
    newSecret: () => `${name}-secret-${ids++}`,
    instance: name,
    config: { maxSlotPerHost: 1 },
    observe: (event) => events.push(event),
  });
}

const counted = (benches: readonly Bench[], type: "timeout" | "granted" | "session_created") =>
  benches.reduce((sum, { queue }) => sum + queue.counts[type], 0);

describe("faults that a fleet had", () => {
  test("a session that moved during its grant kept the slot for a whole lease, and no instance took it back", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1, zombieTimeoutSeconds: 30 });
    const token = await one.take("z");
    const moving = await one.begin("a");
    const left = new AbortController();
    const held = one.queue.poll(moving, { signal: left.signal }).catch(() => undefined);
    await drained();
    // The answer of the store is on its way when the caller of the poll leaves and polls the other instance.
    one.late = [];
    one.queue.release({ slotToken: token });
    await drained();
    left.abort();
    await held;
    const answer = two.queue.poll(moving);
    await drained();
    for (const answered of one.late) answered();
    one.late = undefined;
    await one.clock.run(2_500);
    const granted = await answer;
    if (granted.result !== "granted") throw new Error(`Expected a slot, got ${granted.result}`);
    expect(await one.held()).toBe(1);
    const next = await one.want("b");
    await two.release(granted.slotToken);
    await one.clock.run(50);
    expect(next.isGranted, "the slot that was given back is granted at once").toBe(true);
  });

  test("a client got `released` for a slot that it never received", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1 });
    const session = await one.begin("a");
    await one.clock.run(100);
    const answers = [await two.queue.poll(session), await one.queue.poll(session), await two.queue.poll(session)];
    expect(new Set(answers.map((answer) => ("slotToken" in answer ? answer.slotToken : answer.result))).size).toBe(1);
    expect(answers[0]).toMatchObject({ result: "granted" });
  });

  test("a deny window continued after a release at another instance", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 5, maxSlotPerIp: 1 });
    const token = await one.take("a");
    const next = await two.want("a");
    expect(next.isGranted).toBe(false);
    await one.release(token);
    await two.clock.run(50);
    expect(next.isGranted, "not after a deny window of 3 s").toBe(true);
  });

  test("copies of sessions that moved were counted: 56 clients as 171, 197 timeouts as 671", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1, maxWaitMs: 5_000, maxWaitersPerHost: 0 });
    await one.take("z");
    const sessions = await Promise.all(Array.from({ length: 20 }, (_, at) => one.begin(`b${at}`)));
    await Promise.all(sessions.map((session) => two.queue.poll(session, { waitMs: 0 })));
    await one.clock.run(100);
    await Promise.all(sessions.slice(0, 10).map((session) => one.queue.poll(session, { waitMs: 0 })));
    expect((await one.snapshot())?.waiting).toBe(20);
    // The next beat removes the copies.
    await one.clock.run(1_500);
    expect(one.queue.dump().sessions.pending + two.queue.dump().sessions.pending).toBe(20);
    await one.clock.run(10_000);
    expect(counted([one, two], "timeout")).toBe(20);
    expect(counted([one, two], "session_created")).toBe(21);
  });

  test("a copy that missed the move counted a second end, after the store had forgotten the first", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1, maxWaitMs: 5_000 });
    const session = await one.begin("a");
    one.isUnnotified = true;
    one.isStoreDown = true;
    const granted = await two.queue.poll(session);
    if (granted.result !== "granted") throw new Error(`Expected a slot, got ${granted.result}`);
    await two.release(granted.slotToken);
    await one.clock.run(5_500);
    one.isStoreDown = false;
    await one.clock.run(2_000);
    expect([counted([one, two], "granted"), counted([one, two], "timeout")]).toEqual([1, 0]);
  });

  test("a session that its client cancelled after a restart was not counted", async () => {
    const before = new Bench({ maxSlotPerHost: 1 });
    const holder = await before.begin("z");
    const granted = await before.queue.poll(holder);
    const waiter = await before.begin("a");
    await before.queue.leave();
    before.queue.close();
    const after = new Bench({ maxSlotPerHost: 1 }, before);
    await after.queue.start();
    for (const session of [waiter, holder, waiter, holder]) expect(after.queue.cancel(session)).toBe("gone");
    await drained();
    expect(granted.result).toBe("granted");
    expect([before.queue.counts.canceled, after.queue.counts.canceled]).toEqual([0, 2]);
    expect(await after.snapshot()).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  test.each(["has seen", "has not seen yet"])(
    "a session cancelled at an instance that %s the session's own instance was counted as a timeout, or not at all",
    async (knows) => {
      const [one, two] = fleet({ maxSlotPerHost: 1 });
      await one.take("z");
      const session = await one.begin("a");
      await one.queue.start();
      if (knows === "has seen") await two.queue.start();
      two.queue.cancel(session);
      await drained();
      expect([one, two].map(({ queue }) => queue.counts.canceled)).toEqual([0, 1]);
      expect([counted([one, two], "session_created"), counted([one, two], "timeout")]).toEqual([2, 0]);
      expect(one.queue.dump().sessions.pending).toBe(0);
    },
  );

  test("an instance whose clock was 10 s behind jumped the queue", async () => {
    const world = new VirtualClock();
    const store = new MemoryStore({ clock: new SkewedClock(world), isShared: true });
    const right = instanceOf("right", store, new SkewedClock(world));
    const behind = instanceOf("behind", store, new SkewedClock(world, undefined, -10_000));
    await Promise.all([right.start(), behind.start()]);
    const holder = await right.begin({ host: "h", bucket: "z", waitMs: 1 });
    if (holder.result !== "granted") throw new Error(`Expected a slot, got ${holder.result}`);
    const first = right.begin({ host: "h", bucket: "a", waitMs: 5_000 });
    await world.run(1_000);
    const second = behind.begin({ host: "h", bucket: "b", waitMs: 5_000 });
    await world.run(100);
    right.release({ slotToken: holder.slotToken });
    await world.run(100);
    expect((await first).result).toBe("granted");
    await world.run(6_000);
    expect((await second).result).toBe("pending");
  });

  test("an instance whose clock was 120 s behind left waiters without sessions", async () => {
    const world = new VirtualClock();
    const store = new MemoryStore({ clock: new SkewedClock(world), isShared: true });
    const behind = instanceOf("behind", store, new SkewedClock(world, undefined, -120_000));
    await behind.start();
    await behind.begin({ host: "h", bucket: "z", waitMs: 1 });
    for (let at = 0; at < 20; at++) await behind.begin({ host: "h", bucket: `b${at}` });
    await world.run(21_000);
    const image = (await store.peek(["h"])).get("h");
    expect(image?.records.filter(({ kind }) => kind === "waiter")).toEqual([]);
    expect(behind.counts.timeout).toBe(20);
  });

  test("200 hosts with one idle waiter each cost 528 transactions a second", async () => {
    const [bench] = fleet({ maxSlotPerHost: 1, maxWaitMs: 60_000, globalMaxWaiters: 0 });
    for (let at = 0; at < 200; at++) {
      await bench.take("z", { host: `h${at}`, hostname: `h${at}` });
      void bench.follow(await bench.begin("a", { host: `h${at}`, hostname: `h${at}` }));
    }
    await bench.clock.run(2_000);
    bench.calls.length = 0;
    await bench.clock.run(10_000);
    expect(bench.calls.length / 10).toBeLessThanOrEqual(5);
  });
});

describe("faults of a fleet that the simulator found", () => {
  test.each([
    ["10 s", 10_000],
    ["120 s", 120_000],
  ])(
    "an instance that started with its clock %s ahead sent no beats until then, and its waiters were dropped",
    async (_, aheadMs) => {
      const world = new VirtualClock();
      const store = new MemoryStore({ clock: new SkewedClock(world), isShared: true });
      const right = instanceOf("right", store, new SkewedClock(world));
      const ahead = instanceOf("ahead", store, new SkewedClock(world, undefined, aheadMs));
      await Promise.all([right.start(), ahead.start()]);
      await right.begin({ host: "h", bucket: "z", waitMs: 1 });
      void right.begin({ host: "h", bucket: "a", waitMs: 15_000 });
      void ahead.begin({ host: "h", bucket: "b", waitMs: 15_000 });
      await world.run(1_000);
      const waiters = async () =>
        (await store.peek(["h"]))
          .get("h")
          ?.records.flatMap((record) => (record.kind === "waiter" ? record.bucket : []));
      for (let second = 0; second < 10; second++) {
        await world.run(1_000);
        expect((await waiters())?.sort()).toEqual(["a", "b"]);
      }
      // An idle instance must also be known as alive.
      await world.run(80_000);
      expect((await store.instances()).map(({ instance }) => instance).sort()).toEqual(["ahead", "right"]);
    },
  );

  test("a stuck call was only visible when it was aborted", async () => {
    const [one] = fleet({ maxSlotPerHost: 1 });
    const token = await one.take("z");
    const waiting = await one.begin("a");
    const stalled: (() => void)[] = [];
    one.stalled = stalled;
    one.queue.release({ slotToken: token });
    await drained();
    await one.clock.run(900);
    const answers: PollAnswer[] = [];
    void one.queue.poll(waiting, { waitMs: 0 }).then((answer) => answers.push(answer));
    await drained();
    expect(answers, "a call waits for the commit").toEqual([]);
    await one.clock.run(200);
    expect(answers).toMatchObject([{ result: "pending", blockedBy: "store" }]);
    expect(await one.queue.poll(waiting, { waitMs: 0 })).toMatchObject({ result: "pending", blockedBy: "store" });
    // A first call is answered immediately with what is known. The stuck commit was neither aborted nor repeated.
    expect(await one.ask("b")).toMatchObject({ result: "pending", blockedBy: "store" });
    expect(one.calls.filter((call) => call === "commit")).toHaveLength(3);
    one.stalled = undefined;
    for (const goOn of stalled) goOn();
    await drained();
    expect(await one.queue.poll(waiting, { waitMs: 1_000 })).toMatchObject({ result: "granted" });
  });

  test("the waiters of a dead instance kept a host forever if no other session waited", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1, sessionIdleSeconds: 10 });
    const token = await two.take("z");
    await one.begin("a");
    await two.clock.run(100);
    one.queue.close();
    await two.release(token);
    await two.clock.run(60_000);
    await two.queue.sweep();
    expect([...(await two.memory.hostKeys())]).toEqual([]);
  });

  test("a slot released with a minimum hold stayed idle until the next beat of the instance whose client waited", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1, minSlotHoldMs: 200 });
    const token = await one.take("z");
    const waiting = await two.want("a");
    await one.release(token, { hitUpstreamAtMs: one.clock.now() });
    await one.clock.run(199);
    expect(waiting.isGranted).toBe(false);
    await one.clock.run(60);
    expect(waiting.isGranted).toBe(true);
  });

  test("an instance that gave up a session took back the slot that another instance had delivered", async () => {
    const [one, two] = fleet({ maxSlotPerHost: 1, maxWaitMs: 3_000, zombieTimeoutSeconds: 30 });
    const session = await one.begin("a");
    one.isUnnotified = true;
    const granted = await two.queue.poll(session);
    expect(granted.result).toBe("granted");
    // Its deadline passes at the instance that still has a copy of it.
    await one.clock.run(5_000);
    expect(await one.held()).toBe(1);
  });

  test("a copy that was given up during an outage of the store ended the session that its client continued", async () => {
    const bench = new Bench({
      maxSlotPerHost: 1,
      sessionIdleSeconds: 2,
      defaultGrantedCleanupDelay: 0,
      pollIntervalMs: 100,
    });
    bench.isStoreDown = true;
    const answer = await bench.ask("a");
    if (answer.result !== "pending") throw new Error(`Expected pending, got ${answer.result}`);
    await bench.clock.run(3_000);
    const back = bench.follow(answer.session);
    bench.isStoreDown = false;
    await bench.clock.run(1_000);
    expect(back.isGranted).toBe(true);
    expect(await bench.held()).toBe(1);
    expect(bench.queue.counts).toMatchObject({ session_created: 1, granted: 1, timeout: 0 });
  });
});

describe("faults that an attack on a fleet found", () => {
  test.each([
    ["released", "released", (two: Bench, { slotToken }: Fetched) => two.release(slotToken)],
    ["cancelled", "canceled", async (two: Bench, { session }: Fetched) => void two.queue.cancel(session)],
    [
      "revoked",
      "released",
      (two: Bench, { fence }: Fetched) => two.queue.operate({ kind: "revoke", host: "h", fence }),
    ],
  ])("a slot that was %s at another instance was still granted to a repeated call", async (_, reason, end) => {
    const [one, two] = fleet({ maxSlotPerHost: 1 });
    const request = { requestId: "r", sessionId: "s", waitMs: 1 };
    const fetched = await one.ask("a", request);
    if (fetched.result !== "granted") throw new Error(`Expected a slot, got ${fetched.result}`);
    expect(await one.queue.poll(fetched.session), "while the slot is held").toMatchObject({
      result: "granted",
      slotToken: fetched.slotToken,
    });
    await end(two, fetched);
    await drained();
    await two.take("b");
    expect(await one.queue.poll(fetched.session)).toEqual({ result: "timeout", reason });
    expect(await one.ask("a", request)).toEqual({ result: "timeout", reason });
    expect(await two.queue.poll(fetched.session)).toEqual({ result: "timeout", reason });
    expect([counted([one, two], "session_created"), counted([one, two], "granted")]).toEqual([2, 2]);
  });

  test("a deny window continued after a direct SQL caller had released the slot of the bucket", async () => {
    const [one] = fleet({ maxSlotPerHost: 5, maxSlotPerIp: 1 });
    const token = await one.take("a");
    const next = await one.want("a");
    expect(next.last).not.toMatchObject({ result: "granted" });
    await releaseDirectly(one, token);
    await one.clock.run(50);
    expect(next.isGranted, "not after a deny window of 3 s").toBe(true);
  });
});

type Fetched = Extract<BeginAnswer, { result: "granted" }>;

/** Commits what `download_release_slot` does: it ends the lease, and leaves the account of the bucket as it is. */
async function releaseDirectly({ memory, clock }: Bench, token: string): Promise<void> {
  const { tag: base, tail } = await memory.read("h", undefined);
  if (tail.kind !== "book" || tail.book === undefined) throw new Error("Expected the whole host");
  const now = clock.now();
  const changes = { head: { ...tail.book.head, now }, puts: [], dels: [["lease", token] as const] };
  const rest = { host: "h", instance: "", hasOthers: true, wake: ["one"], conflicts: 0 };
  const tag = `${Number.parseInt(base ?? "0", 10) + 1}.direct`;
  expect(await memory.commit({ ...rest, base, tag, now, changes })).toMatchObject({ isOk: true });
}
