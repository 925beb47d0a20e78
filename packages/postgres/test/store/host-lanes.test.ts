import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HostLanes, type HostRequest } from "../../src/store/host-lanes.ts";

const LOCKED = new Error("locked");
const LIMITS = { perHost: 2, inAll: 4, stuck: 1, together: 3 };

interface Request extends HostRequest {
  readonly name: string;
}

/** Calls that end on command. Their names are those of their requests; the first character of a request is its host. */
class Calls {
  readonly lanes: HostLanes<Request, string>;
  readonly running = new Map<string, (error?: Error) => void>();
  readonly #outcomes: Promise<unknown>[] = [];

  constructor() {
    const send = (requests: readonly Request[]) =>
      new Promise<readonly string[]>((resolve, reject) => {
        const names = requests.map(({ name }) => name);
        const end = (error?: Error) => (error === undefined ? resolve(names) : reject(error));
        this.running.set(names.join("+"), end);
      });
    this.lanes = new HostLanes(LIMITS, { send, isStuck: (error) => error === LOCKED });
  }

  start(...names: string[]): void {
    for (const name of names) this.#request(name, false);
  }

  startShareable(...names: string[]): void {
    for (const name of names) this.#request(name, true);
  }

  async end(name: string, error?: Error): Promise<void> {
    const end = this.running.get(name);
    this.running.delete(name);
    end?.(error);
    await turn();
  }

  async endAll(): Promise<unknown[]> {
    while (this.running.size > 0) for (const name of this.running.keys()) await this.end(name);
    return Promise.all(this.#outcomes);
  }

  get now(): string[] {
    return [...this.running.keys()].sort();
  }

  #request(name: string, isShareable: boolean): void {
    const run = this.lanes.run({ host: name.slice(0, 1), isShareable, name });
    this.#outcomes.push(run.catch((error: unknown) => error));
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
  expect(calls.now).toEqual(["a1", "b1", "c1", "d1"]);
  expect(calls.lanes.counts).toEqual({ waiting: 2, waits: 2 });
  await calls.end("b1");
  expect(calls.now).toEqual(["a1", "a2", "c1", "d1"]);
  await calls.end("d1");
  expect(calls.now).toEqual(["a1", "a2", "c1"]);
  await calls.end("a2");
  expect(calls.now).toEqual(["a1", "a3", "c1"]);
});

test("LANE2: hosts that failed because of a lock share one call until one succeeds, and other hosts get the rest", async () => {
  calls.start("a1", "b1", "c1");
  await turn();
  for (const name of ["a1", "b1", "c1"]) await calls.end(name, LOCKED);
  calls.start("a2", "a3", "b2", "c2", "x1");
  await turn();
  expect(calls.now).toEqual(["a2", "x1"]);
  calls.start("y1", "y2", "z1");
  await turn();
  expect(calls.now).toEqual(["a2", "x1", "y1", "z1"]);
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

test("LANE4: shareable requests of one job share calls, in the order of their hosts, and each gets its own reply", async () => {
  calls.startShareable("c1", "a1", "d1", "b1");
  await turn();
  expect(calls.now).toEqual(["a1+c1+d1", "b1"]);
  expect(calls.lanes.counts.waits).toBe(0);
  expect(await calls.endAll()).toEqual(["c1", "a1", "d1", "b1"]);
});

test("LANE4: requests that had to wait share the next call, one of each host", async () => {
  calls.start("v1", "x1", "y1", "z1");
  await turn();
  calls.startShareable("a1", "a2", "b1");
  await turn();
  expect(calls.now).toEqual(["v1", "x1", "y1", "z1"]);
  await calls.end("v1");
  expect(calls.now).toEqual(["a1+b1", "x1", "y1", "z1"]);
  await calls.end("x1");
  expect(calls.now).toEqual(["a1+b1", "a2", "y1", "z1"]);
});

test("LANE4: a request that is not shareable is sent alone", async () => {
  calls.startShareable("a1");
  calls.start("b1");
  calls.startShareable("c1");
  await turn();
  expect(calls.now).toEqual(["a1+c1", "b1"]);
});

test("LANE4: requests that failed together are sent again alone, in order, and only the one that fails again is rejected", async () => {
  calls.startShareable("a1", "b1");
  await turn();
  calls.startShareable("a2");
  await turn();
  expect(calls.now).toEqual(["a1+b1", "a2"]);
  calls.startShareable("a3");
  await calls.end("a1+b1", LOCKED);
  expect(calls.now).toEqual(["a1", "a2", "b1"]);
  await calls.end("a1", LOCKED);
  expect(await calls.endAll()).toEqual([LOCKED, "b1", "a2", "a3"]);
});

test("LANE4: a stuck host shares no call", async () => {
  calls.startShareable("a1");
  await turn();
  await calls.end("a1", LOCKED);
  calls.startShareable("a2", "b1", "c1");
  await turn();
  expect(calls.now).toEqual(["a2", "b1+c1"]);
});

test("a host without requests is forgotten after shared calls, too", async () => {
  calls.startShareable("a1", "b1");
  await turn();
  await calls.end("a1+b1");
  expect(calls.lanes.hosts).toBe(0);
});
