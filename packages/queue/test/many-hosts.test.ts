import { type Commit, type CommitReply, FairQueue, MemoryStore, overrideOf } from "@slotkeeper/queue";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

/** Work for all hosts is done in turns of the event loop, so that no turn takes long. `scripts/silence.mjs` measures it. */

class CountingStore extends MemoryStore {
  readonly committed: string[] = [];

  override commit(commit: Commit): CommitReply | Promise<CommitReply> {
    this.committed.push(commit.host);
    return super.commit(commit);
  }
}

/** Counts the inputs that each timer sends to hosts. */
class CountingClock extends VirtualClock {
  readonly inputs: number[] = [];
  unsent = () => 0;

  override setTimer(callback: () => void, delayMs: number): ReturnType<VirtualClock["setTimer"]> {
    return super.setTimer(() => {
      const before = this.unsent();
      callback();
      this.inputs.push(this.unsent() - before);
    }, delayMs);
  }
}

/** A queue whose turns are run by hand. */
class World {
  readonly clock = new CountingClock();
  readonly store = new CountingStore({ clock: this.clock });
  #tasks: (() => void)[] = [];
  #ids = 0;
  readonly queue = new FairQueue({
    store: this.store,
    clock: this.clock,
    newSessionId: () => `session-${this.#ids++}`,
    newSecret: () => `secret-${this.#ids++}`,
    instance: "one",
    config: { maxSlotPerHost: 1, globalMaxWaiters: -1, maxWaitersPerHost: 0 },
    soon: (task) => this.#tasks.push(task),
  });

  constructor() {
    this.clock.unsent = () => this.queue.overview().unsent;
  }

  get isBusy(): boolean {
    return this.#tasks.length > 0;
  }

  /** Runs what waits now. Tasks that it adds belong to the next turn. */
  async turn(): Promise<string[]> {
    const tasks = this.#tasks;
    this.#tasks = [];
    const before = this.store.committed.length;
    for (const task of tasks) task();
    await Promise.resolve();
    return this.store.committed.slice(before);
  }

  async rest(): Promise<string[][]> {
    const turns: string[][] = [];
    while (this.isBusy) turns.push(await this.turn());
    return turns;
  }

  async addHosts(count: number): Promise<void> {
    for (let at = 0; at < count; at++) void this.queue.operate({ kind: "breaker", host: `host-${at}`, isOpen: false });
    await this.rest();
  }
}

describe("with many hosts", () => {
  it("new settings reach every host, some in each turn, and first those with waiting sessions", async () => {
    const world = new World();
    await world.addHosts(1_050);
    const last = "host-1049";
    const holder = world.queue.begin({ host: last, bucket: "a", waitMs: 1_000 });
    const waiter = world.queue.begin({ host: last, bucket: "b", waitMs: 1_000 });
    await world.rest();
    expect((await holder).result).toBe("granted");
    world.queue.reconfigure({ maxSlotPerHost: 2 });
    expect(world.queue.overview().unsent).toBeLessThanOrEqual(100);
    const turns = await world.rest();
    expect((await waiter).result).toBe("granted");
    expect(turns[0]).toContain(last);
    expect(Math.max(...turns.map(({ length }) => length))).toBeLessThanOrEqual(101);
    const images = await world.store.peek(await world.store.hostKeys());
    expect(images.size).toBe(1_050);
    expect(new Set(Array.from(images.values(), ({ head }) => head.slots))).toEqual(new Set([2]));
    expect(world.queue.overview().unsent).toBe(0);
  });

  it("a host that is used between new settings and its turn has them already", async () => {
    const world = new World();
    await world.addHosts(300);
    world.queue.reconfigure({ maxSlotPerHost: 2 });
    const both = ["a", "b"].map((bucket) => world.queue.begin({ host: "host-299", bucket, waitMs: 1_000 }));
    await world.turn();
    expect((await Promise.all(both)).map(({ result }) => result)).toEqual(["granted", "granted"]);
    await world.rest();
  });

  it("a sweep wakes some hosts in each turn", async () => {
    const world = new World();
    await world.addHosts(1_050);
    const isDone = world.queue.sweep();
    let turns = 0;
    for (; world.isBusy; turns++) await world.turn();
    expect(turns).toBeGreaterThanOrEqual(10);
    await isDone;
  });

  it("timers that are due together run in parts, and all of them run", async () => {
    const world = new World();
    await world.addHosts(1);
    for (let at = 0; at < 1_800; at++) void world.queue.begin({ host: "host-0", bucket: `b${at}` });
    await world.rest();
    await world.clock.run(30_000);
    await world.rest();
    expect(world.queue.overview().pending).toBe(0);
    expect(world.clock.inputs.reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(1_800);
    expect(Math.max(...world.clock.inputs)).toBeLessThanOrEqual(500);
  });

  it("a store counts and cleans up in parts, and keeps a host that is used in between", async () => {
    const clock = new VirtualClock();
    const world = new World();
    await world.addHosts(1_700);
    let pauses = 0;
    let onPause = () => {};
    const pause = async () => {
      pauses++;
      onPause();
    };
    const store = new MemoryStore({ clock, hosts: world.store.images(), pause });
    expect((await Promise.all([store.totals(), store.totals()])).map(({ hosts }) => hosts)).toEqual([1_700, 1_700]);
    expect(pauses).toBe(3);
    await clock.run(3_600_000);
    const [kept] = (await store.hostKeys()).slice(-1) as [string];
    const image = (await store.peek([kept])).get(kept);
    const read = await store.read(kept, undefined);
    onPause = () => {
      onPause = () => {};
      const head = { ...(image?.head as object), now: clock.now() } as Commit["changes"]["head"];
      const changes = { head, puts: [], dels: [] };
      const now = clock.now();
      void store.commit({
        host: kept,
        instance: "two",
        base: read.tag,
        tag: "9.x",
        now,
        changes,
        hasOthers: false,
        wake: [],
        conflicts: 0,
      });
    };
    expect((await store.cleanup({ idleMs: 1_000 })).hosts).toBe(1_699);
    expect(await store.hostKeys()).toEqual([kept]);
  });
});

describe("the override of a host", () => {
  const label = fc.constantFrom("a", "b", "C", "xn--d", "");
  const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join("."));
  const pattern = fc.oneof(
    name,
    name.map((rest) => `*.${rest}`),
    fc.constant("*"),
  );

  it("is that of the exact name, otherwise that of the longest pattern", () => {
    fc.assert(
      fc.property(fc.uniqueArray(pattern, { selector: (text) => text.toLowerCase() }), name, (patterns, host) => {
        const hosts = Object.fromEntries(patterns.map((text) => [text, {}]));
        expect(overrideOf(hosts, host)?.pattern).toBe(slowly(patterns, host));
      }),
      { numRuns: 2_000 },
    );
  });

  /** By comparing every pattern. */
  function slowly(patterns: readonly string[], host: string): string | undefined {
    const asked = host.toLowerCase();
    const matches = (text: string) => {
      const key = text.toLowerCase();
      if (key === "*" || key === asked) return true;
      return key.startsWith("*.") && (asked === key.slice(2) || asked.endsWith(key.slice(1)));
    };
    const exact = patterns.find((text) => text.toLowerCase() === asked);
    return exact ?? patterns.filter(matches).sort((a, b) => b.length - a.length)[0];
  }
});
