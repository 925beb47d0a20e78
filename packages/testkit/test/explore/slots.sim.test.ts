import {
  type Action,
  type Census,
  poolSource,
  type Scenario,
  type SlotSource,
  semaphoreSource,
  slotStorm,
} from "@slotkeeper/testkit/explore";
import type { Slot } from "slotkeeper";
import { exploreAsync } from "slotkeeper/effects";
import { describe, expect, it } from "vitest";

const RUNS = 2_000;
const actions: readonly Action[] = ["wait", "timeout", "abort", "try"];

/** Every user does every action; each starts with a different one. */
function users(count: number, keys: readonly string[]): Scenario["users"] {
  return Array.from({ length: count }, (_, id) => ({
    key: keys[id % keys.length] as string,
    actions: [...actions.slice(id % 4), ...actions.slice(0, id % 4)],
  }));
}

async function explored(scenario: Scenario, runs = RUNS): Promise<{ ok: boolean; report: string; census: Census }> {
  const census: Census = { wait: zero(), timeout: zero(), abort: zero(), try: zero() };
  const result = await exploreAsync(slotStorm(scenario), {
    runs,
    print: () => {},
    check: ({ value }) => {
      for (const action of actions) {
        census[action].granted += value[action].granted;
        census[action].refused += value[action].refused;
      }
    },
  });
  return { ok: result.ok, report: result.failure?.report ?? "", census };
}

function zero(): { granted: number; refused: number } {
  return { granted: 0, refused: 0 };
}

describe("the library's promises under thousands of interleavings", () => {
  it.each([
    ["a mutex", { source: semaphoreSource(1), users: users(4, ["k"]) }],
    ["a semaphore of two", { source: semaphoreSource(2), users: users(6, ["k"]) }],
    ["a pool of two, one per key", { source: poolSource(2, 1), users: users(6, ["a", "b"]) }],
    ["a pool of one, two per key", { source: poolSource(1, 2), users: users(5, ["a", "b"]) }],
  ])("hold for %s", async (_, scenario) => {
    const { ok, report, census } = await explored(scenario);
    expect(report).toBe("");
    expect(ok).toBe(true);
    // The storm is useful only if every kind of request both succeeded and failed.
    expect(census.wait).toMatchObject({ granted: RUNS * scenario.users.length, refused: 0 });
    for (const action of ["timeout", "abort", "try"] as const) {
      expect(census[action].granted, action).toBeGreaterThan(0);
      expect(census[action].refused, action).toBeGreaterThan(0);
    }
  });
});

describe("the storm itself", () => {
  /** The real semaphore with one fault: each of these must be found. */
  const faults: readonly [string, RegExp, (source: SlotSource) => Partial<SlotSource>][] = [
    ["grants one too many", /STORM1/, () => ({ limit: 1 })],
    [
      "loses a wake-up",
      /DeadlockError/,
      (source) => {
        let grants = 0;
        return {
          acquire: (request) => {
            const promise = source.acquire(request);
            promise.catch(() => {});
            return ++grants === 3 ? new Promise<Slot>(() => {}) : promise;
          },
        };
      },
    ],
    [
      "leaks the slot of an aborted waiter",
      /STORM6|DeadlockError/,
      (source) => ({
        acquire: ({ signal, ...request }) =>
          new Promise<Slot>((resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
            source.acquire({ ...request, signal: new AbortController().signal }).then(resolve, reject);
          }),
      }),
    ],
    [
      "releases twice",
      /STORM5/,
      (source) => ({
        tryAcquire: (key) => {
          const slot = source.tryAcquire(key);
          return slot && ({ release: () => slot.release() || true } as Slot);
        },
      }),
    ],
    [
      "serves the last first",
      /STORM2/,
      (source) => {
        const stack: (() => void)[] = [];
        return {
          acquire: async (request) => {
            if (source.inUse >= source.limit) await new Promise<void>((resolve) => stack.push(resolve));
            const slot = await source.acquire({ key: request.key, signal: new AbortController().signal });
            const release = (): boolean => {
              const isFirst = slot.release();
              if (isFirst) stack.pop()?.();
              return isFirst;
            };
            return { release } as Slot;
          },
        };
      },
    ],
  ];

  it.each(faults)("finds a semaphore that %s", async (_, expected, fault) => {
    const sound = semaphoreSource(2);
    const scenario: Scenario = {
      source: (clock) => {
        const source = sound(clock);
        const faulty = Object.create(source) as SlotSource;
        return Object.assign(faulty, fault(source));
      },
      users: users(8, ["k"]),
    };
    const { ok, report } = await explored(scenario, 300);
    expect(ok).toBe(false);
    expect(report).toMatch(expected);
  });
});
