import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CallClock } from "../src/call-clock.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

test("CALLS1: no timer of the runtime is pending while no call is in progress", () => {
  const clock = new CallClock();
  clock.setTimer(() => {}, 100);
  expect(vi.getTimerCount()).toBe(0);
  clock.begin();
  clock.begin();
  clock.setTimer(() => {}, 200);
  expect(vi.getTimerCount()).toBe(2);
  clock.end();
  expect(vi.getTimerCount()).toBe(2);
  clock.end();
  expect(vi.getTimerCount()).toBe(0);
});

test("CALLS2: a timer that became due fires at the next call, the others at their time, a cleared one never", () => {
  const clock = new CallClock();
  const fired: string[] = [];
  clock.setTimer(() => fired.push("due"), 100);
  clock.setTimer(() => fired.push("later"), 1_000);
  const cleared = clock.setTimer(() => fired.push("cleared"), 100);
  vi.advanceTimersByTime(500);
  clock.clearTimer(cleared);
  expect(fired).toEqual([]);
  clock.begin();
  vi.advanceTimersByTime(0);
  expect(fired).toEqual(["due"]);
  vi.advanceTimersByTime(500);
  expect(fired).toEqual(["due", "later"]);
  clock.end();
});
