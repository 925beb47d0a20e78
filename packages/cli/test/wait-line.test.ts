import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { WaitLine } from "../src/wait-line.ts";
import { timeoutText, waitingText } from "../src/wait-words.ts";

const PENDING = { position: 2, waiters: 4, estimatedWaitMs: 40_000, blockedBy: "host-limit" };
const held = (bucket: string, heldMs: number | undefined) => ({ bucket, heldMs });

describe("the words of a wait", () => {
  test.each([
    [
      "all that is known",
      { pending: PENDING, use: { inUse: 3, slots: 3, holders: [held("../feature-x", 120_000)] } },
      'waiting for "build": 3 of 3 in use, place 2 of 4, about 40 s (held by ../feature-x since 2 min 0 s)',
    ],
    [
      "only the answer of the service",
      { pending: { ...PENDING, estimatedWaitMs: undefined }, use: undefined },
      'waiting for "build": all slots in use, place 2 of 4',
    ],
    ["nothing", { pending: undefined, use: undefined }, 'waiting for "build"'],
    [
      "a store that does not answer",
      { pending: { ...PENDING, blockedBy: "store" }, use: { inUse: 0, slots: 3, holders: [] } },
      'waiting for "build": the service cannot reach its store, place 2 of 4, about 40 s',
    ],
    [
      "holders without a name",
      { pending: PENDING, use: { inUse: 2, slots: 2, holders: [held("", 9_000), held("", 100)] } },
      'waiting for "build": 2 of 2 in use, place 2 of 4, about 40 s (longest hold 9.0 s)',
    ],
    [
      "many holders, one with a hostile name",
      {
        pending: { ...PENDING, blockedBy: "ip-limit" },
        use: {
          inUse: 4,
          slots: 9,
          holders: [held("a\u001b[2J", 9_000), held("b", undefined), held("", 1), held("c", 1)],
        },
      },
      'waiting for "build": bucket at its limit, place 2 of 4, about 40 s (held by a\\u{1b}[2J since 9.0 s and b, and 2 more)',
    ],
  ])("%s", (_, state, text) => {
    expect(waitingText("build", state)).toBe(text);
  });

  test("a time-out names place, cause and holders; nothing if nothing is known", () => {
    const use = { inUse: 1, slots: 1, holders: [held("me", 2_000)] };
    expect(timeoutText({ pending: PENDING, use })).toBe("place 2 of 4, 1 of 1 in use, held by me since 2.0 s");
    expect(timeoutText({ pending: undefined, use })).toBe("1 of 1 in use, held by me since 2.0 s");
    expect(timeoutText({ pending: undefined, use: undefined })).toBe("");
  });
});

describe("the line of a wait", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const output = (isTTY: boolean) => {
    const written: string[] = [];
    return { written, isTTY, columns: 20, write: (text: string) => void written.push(text) };
  };

  test("on a terminal each text replaces the one before, cut to the width, and the end erases it", () => {
    const to = output(true);
    const line = new WaitLine(to);
    line.show("waiting for something long");
    line.show("waiting");
    line.close();
    expect(to.written).toEqual(["\rwaiting for someth…\u001b[K", "\rwaiting\u001b[K", "\r\u001b[K"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("in a log, the newest text is printed after 5 seconds and then once a minute", () => {
    const to = output(false);
    const line = new WaitLine(to);
    line.show("one");
    vi.advanceTimersByTime(4_999);
    line.show("two");
    expect(to.written).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(to.written).toEqual(["two\n"]);
    line.show("three");
    vi.advanceTimersByTime(59_999);
    expect(to.written).toHaveLength(1);
    vi.advanceTimersByTime(60_001);
    expect(to.written).toEqual(["two\n", "three\n", "three\n"]);
    line.close();
    expect(vi.getTimerCount()).toBe(0);
  });

  test("a wait that ends at once shows nothing", () => {
    for (const isTTY of [true, false]) {
      const to = output(isTTY);
      new WaitLine(to).close();
      expect(to.written).toEqual([]);
    }
  });
});
