import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { loadConfig } from "@slotkeeper/server";
import { HostSettings, Telemetry } from "@slotkeeper/server/internals";
import { VirtualClock } from "@slotkeeper/testkit/simulator";
import { describe, expect, it } from "vitest";

/**
 * How often three instances call their store while little happens. On PostgreSQL every call is a transaction;
 * `scripts/idle-cost.mjs` counts them there.
 */

const CONFIG = { maxSlotPerHost: 1, maxSlotPerIp: -1, maxWaitMs: 3_600_000, zombieTimeoutSeconds: 3_600 };
const NO_CAPS = { maxWaitersPerHost: 0, globalMaxWaiters: -1 };

class Instance {
  readonly queue: FairQueue;
  readonly #telemetry: Telemetry;

  constructor(store: MemoryStore, clock: VirtualClock, instance: string) {
    let names = 0;
    const newName = () => `${instance}-${names++}`;
    const log = { debug() {}, info() {}, warn() {}, error() {}, audit() {}, isOn: () => false };
    const live = { hosts: new HostSettings(loadConfig({}), (name) => name), config: { version: "default" } };
    this.#telemetry = new Telemetry({ store, clock, log, instance, live: () => live });
    this.queue = new FairQueue({
      store: this.#telemetry.store,
      clock,
      newSessionId: newName,
      newSecret: newName,
      instance,
      config: { ...CONFIG, ...NO_CAPS },
      observe: (event) => this.#telemetry.observe(event),
    });
    this.#telemetry.start(this.queue);
  }

  get calls(): number {
    let sum = 0;
    for (const [, calls] of this.#telemetry.instruments.series("store"))
      if (typeof calls !== "number") for (const count of calls.counts) sum += count;
    return sum;
  }
}

async function fleet() {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock, isShared: true });
  const instances = ["one", "two", "three"].map((name) => new Instance(store, clock, name));
  for (const { queue } of instances) void queue.start();
  const callsPerSecond = async (seconds: number) => {
    const sum = () => instances.reduce((all, { calls }) => all + calls, 0);
    const before = sum();
    await clock.run(seconds * 1000);
    return (sum() - before) / seconds;
  };
  const close = () => {
    for (const { queue } of instances) queue.close();
  };
  return { clock, queues: instances.map(({ queue }) => queue), callsPerSecond, close };
}

describe("the calls of three instances to their store", () => {
  it("are less than one in two seconds without callers, and again after a load", async () => {
    const { clock, queues, callsPerSecond, close } = await fleet();
    expect(await callsPerSecond(120)).toBeLessThanOrEqual(0.5);
    for (let at = 0; at < 60; at++) {
      const queue = queues[at % 3] as FairQueue;
      const granted = queue.begin({ host: `h${at % 20}`, bucket: "b", waitMs: 1_000 });
      await clock.run(10);
      const answer = await granted;
      if (answer.result === "granted") queue.release({ slotToken: answer.slotToken });
    }
    await clock.run(300_000);
    expect(await callsPerSecond(120)).toBeLessThanOrEqual(0.5);
    close();
  });

  it.each([1, 100])("are less than four a second while 500 sessions wait on %i hosts", async (hosts) => {
    const { clock, queues, callsPerSecond, close } = await fleet();
    let isOver = false;
    const wait = async (at: number) => {
      const queue = queues[at % 3] as FairQueue;
      let answer = await queue.begin({ host: `h${at % hosts}`, bucket: `b${at}`, waitMs: 6_000 });
      while (!isOver && answer.result === "pending") answer = await queue.poll(answer.session);
    };
    const waiting = Array.from({ length: 500 }, (_, at) => wait(at));
    await clock.run(60_000);
    expect(await callsPerSecond(60)).toBeLessThanOrEqual(4);
    isOver = true;
    close();
    await Promise.all(waiting);
  });
});
