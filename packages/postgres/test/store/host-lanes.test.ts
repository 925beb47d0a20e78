import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HostLanes } from "../../src/store/host-lanes.ts";

const LOCKED = new Error("locked");
const LIMITS = { perHost: 2, inAll: 4, stuck: 1 };

/** Calls by name that end on command. */
class Calls {
  readonly lanes = new HostLanes(LIMITS, (error) => error === LOCKED);
  readonly running = new Map<string, (error?: Error) => void>();
  readonly #outcomes: Promise<unknown>[] = [];

  start(...names: string[]): void {
    for (const name of names) {
      const call = () =>
        new Promise<void>((resolve, reject) => {
          this.running.set(name, (error) => (error === undefined ? resolve() : reject(error)));
        });
      this.#outcomes.push(this.lanes.run(name.slice(0, 1), call).catch((error: unknown) => error));
    }
  }

  async end(name: string, error?: Error): Promise<void> {
    this.running.get(name)?.(error);
    this.running.delete(name);
    await turn();
  }

  async endAll(): Promise<unknown[]> {
    while (this.running.size > 0) for (const name of this.running.keys()) await this.end(name);
    return Promise.all(this.#outcomes);
  }

  get now(): string[] {
    return [...this.running.keys()].sort();
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

let calls: Calls;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
  calls = new Calls();
});
afterEach(async () => {
  await calls.endAll();
  expect(calls.lanes.counts.waiting).toBe(0);
  vi.useRealTimers();
});

test("LANE1: a host has at most two calls in progress, all hosts together four, and the calls of a host run in order", async () => {
  calls.start("a1", "a2", "a3", "b1", "c1", "d1");
  await turn();
  expect(calls.now).toEqual(["a1", "a2", "b1", "c1"]);
  expect(calls.lanes.counts).toEqual({ waiting: 2, waits: 2 });
  await calls.end("b1");
  expect(calls.now).toEqual(["a1", "a2", "c1", "d1"]);
  await calls.end("a2");
  expect(calls.now).toEqual(["a1", "a3", "c1", "d1"]);
});

test("LANE2: hosts that failed because of a lock share one call until one succeeds, and other hosts get the rest", async () => {
  calls.start("a1", "b1", "c1");
  await turn();
  for (const name of ["a1", "b1", "c1"]) await calls.end(name, LOCKED);
  calls.start("a2", "a3", "b2", "c2", "x1", "y1", "y2", "z1");
  await turn();
  expect(calls.now).toEqual(["a2", "x1", "y1", "y2"]);
  await calls.end("x1");
  expect(calls.now).toEqual(["a2", "y1", "y2", "z1"]);
  // The stuck hosts take turns with their one call.
  await calls.end("a2", LOCKED);
  expect(calls.now).toEqual(["b2", "y1", "y2", "z1"]);
  for (const name of ["y1", "y2", "z1"]) await calls.end(name);
  expect(calls.now).toEqual(["b2"]);
  // This host is free again; the other one is still stuck.
  await calls.end("b2");
  calls.start("b3", "b4");
  await turn();
  expect(calls.now).toEqual(["b3", "b4", "c2"]);
});

test("LANE2: a stuck host without calls for half a minute is forgotten", async () => {
  calls.start("a1", "b1");
  await turn();
  for (const name of ["a1", "b1"]) await calls.end(name, LOCKED);
  vi.advanceTimersByTime(29_999);
  calls.start("b2", "b3");
  await turn();
  expect([calls.now, calls.lanes.hosts]).toEqual([["b2"], 2]);
  vi.advanceTimersByTime(1);
  // Only the host without calls is removed, by the next call of any host.
  calls.start("x1");
  await turn();
  expect([calls.now, calls.lanes.hosts]).toEqual([["b2", "x1"], 2]);
  calls.start("a2", "a3");
  await turn();
  expect(calls.now).toEqual(["a2", "a3", "b2", "x1"]);
});

test("LANE2: a host with a slow call counts as stuck before the call fails", async () => {
  calls.start("a1", "b1");
  await turn();
  vi.advanceTimersByTime(251);
  calls.start("a2", "b2", "x1", "x2");
  await turn();
  expect(calls.now).toEqual(["a1", "b1", "x1", "x2"]);
  for (const name of ["x1", "x2"]) await calls.end(name);
  expect(calls.now).toEqual(["a1", "b1"]);
  await calls.end("a1");
  await calls.end("b1");
  expect(calls.now).toEqual(["a2", "b2"]);
});

test("LANE3: an error that is not about a lock marks no host as stuck", async () => {
  calls.start("a1");
  await turn();
  await calls.end("a1", new Error("cut"));
  calls.start("a2", "a3");
  await turn();
  expect(calls.now).toEqual(["a2", "a3"]);
});
