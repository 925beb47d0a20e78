import { resolveClasses } from "@slotkeeper/protocol";
import { resolveHost, resolveOptions } from "@slotkeeper/queue";
import { describe, expect, test } from "vitest";
import { Bench } from "./bench-of-one.ts";

const CLASSES = { chat: { weight: 4, floor: 4 }, batch: { ceiling: 10 } } as const;
const BUDGETS = { tokens: { limit: 10, perSeconds: 1 } } as const;

describe("the classes of a host", () => {
  test("always have `default`, with the defaults of a class", () => {
    const policy = resolveHost(resolveOptions({ classes: CLASSES, maxSlotPerHost: 20 }), "any.example").policy;
    expect(policy.classes).toEqual({
      default: { weight: 1, floor: 0 },
      chat: { weight: 4, floor: 4 },
      batch: { weight: 1, floor: 0, ceiling: 10 },
    });
    expect(resolveClasses({ default: { weight: 2 } })).toEqual({ default: { weight: 2, floor: 0 } });
  });

  test("replace those of `fairQueue` as a whole; an empty object removes them, and a semaphore has none", () => {
    const hosts = { "own.example": { classes: { bulk: {} } }, "none.example": { classes: {} } };
    const options = resolveOptions({ classes: CLASSES, maxSlotPerHost: 20, hosts });
    const namesAt = (hostname: string) => Object.keys(resolveHost(options, hostname).policy.classes ?? {});
    expect(namesAt("own.example")).toEqual(["default", "bulk"]);
    expect(namesAt("none.example")).toEqual([]);
    expect(namesAt("sem:jobs")).toEqual([]);
  });

  test.each<[object, string]>([
    [
      { maxSlotPerHost: 4, classes: CLASSES },
      "Expected the floors of `fairQueue.classes` to sum up to less than the slots (4), got 4",
    ],
    [
      { classes: { a: { floor: 3 }, b: { floor: 2 } } },
      "Expected the floors of `fairQueue.classes` to sum up to less than the slots (5), got 5",
    ],
    [
      { maxSlotPerHost: 20, classes: CLASSES, hosts: { "a.example": { maxSlotPerHost: 3 } } },
      'Expected the floors of `fairQueue.hosts["a.example"].classes` to sum up to less than the slots (3), got 4',
    ],
    [
      { maxSlotPerHost: 20, classes: CLASSES, budgets: BUDGETS, hosts: { "a.example": { order: "budget:tokens" } } },
      'Expected `fairQueue.hosts["a.example"].classes` to have no `floor` with the order "budget:tokens"',
    ],
    [{ classes: { Chat: {} } }, "Expected the name `fairQueue.classes.Chat` to be 1 to 32 characters"],
    [{ classes: { a: { floor: 3, ceiling: 2 } } }, "Expected `fairQueue.classes.a.ceiling` to be at least `floor` (3)"],
    [
      { classes: { a: { floor: 1.5 } } },
      "Expected `fairQueue.classes.a.floor` to be a whole number from 0 up, got 1.5",
    ],
    [{ classes: { a: { wieght: 1 } } }, "Unknown key `fairQueue.classes.a.wieght`"],
  ])("are refused if they cannot work, with one problem: %j", (config, problem) => {
    const refused = () => resolveOptions(config);
    expect(refused).toThrow(RangeError);
    expect(refused).toThrow(problem);
    expect(refused).not.toThrow("\n");
  });

  test("with floors do not restrict a host that has other classes, nor a semaphore with few slots", () => {
    const hosts = {
      "a.example": { maxSlotPerHost: 2, classes: { chat: { floor: 1 } } },
      "sem:jobs": { maxSlotPerHost: 1 },
    };
    expect(() => resolveOptions({ maxSlotPerHost: 20, classes: CLASSES, hosts })).not.toThrow();
  });
});

test("a class that is no text is refused before the session begins", async () => {
  const bench = new Bench({ classes: CLASSES, maxSlotPerHost: 20 });
  const refused = bench.queue.begin({ host: "h", class: "c".repeat(33) });
  await expect(refused).rejects.toThrow("Expected `class` to be a string of at most 32 characters");
});
