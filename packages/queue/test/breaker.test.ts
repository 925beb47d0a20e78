import { type BreakerPolicy, phaseFor, resolveHost, resolveOptions } from "@slotkeeper/queue";
import {
  closeBreaker,
  closesAt,
  isCounted,
  isPristine,
  openBreaker,
  reportTo,
  throttleFor,
  viewBreaker,
} from "@slotkeeper/queue/internals";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";

const HOUR_MS = 3_600_000;
const START = 1_000_000;
/** No threshold applies, until a test sets one. */
const POLICY: BreakerPolicy = {
  ...resolveHost(resolveOptions({}), undefined).policy.breaker,
  windowMs: 1_000,
  openMs: 500,
  consecutiveErrors: 0,
  minSamples: 0,
  fastMinSamples: 0,
};

type State = ReturnType<typeof closeBreaker>;

/** The state after these statuses, 1 ms apart. */
function after(policy: BreakerPolicy, statuses: readonly number[], state = closeBreaker()): State {
  return statuses.reduce(
    (before, status, at) => reportTo(before, { status, isProbe: false }, START + at, policy),
    state,
  );
}

const isOpen = (state: State) => state.openedAt !== undefined;
const [GOOD, BAD] = [200, 503];

describe("a closed breaker", () => {
  test.each<[string, Partial<BreakerPolicy>, number[], boolean]>([
    ["one error less than in a row", { consecutiveErrors: 3 }, [BAD, BAD], false],
    ["as many errors in a row", { consecutiveErrors: 3 }, [BAD, BAD, BAD], true],
    ["as many, with a success between them", { consecutiveErrors: 3 }, [BAD, BAD, GOOD, BAD], false],
    [
      "as many, with an answer that does not count between them",
      { consecutiveErrors: 3 },
      [BAD, 404, BAD, 100, BAD],
      true,
    ],
    ["errors in a row, if 0 turns that off", { consecutiveErrors: 0 }, [BAD, BAD, BAD, BAD, BAD], false],
    ["one sample too few", { minSamples: 4, errorRatioPercent: 25 }, [GOOD, BAD, BAD], false],
    ["enough samples below the ratio", { minSamples: 4, errorRatioPercent: 25 }, [GOOD, GOOD, GOOD, GOOD, BAD], false],
    ["enough samples exactly at the ratio", { minSamples: 4, errorRatioPercent: 25 }, [GOOD, GOOD, GOOD, BAD], true],
    ["enough samples above the ratio", { minSamples: 4, errorRatioPercent: 25 }, [GOOD, GOOD, BAD, BAD], true],
    ["the ratio, if 0 samples turn it off", { minSamples: 0, errorRatioPercent: 25 }, [BAD, BAD, BAD, BAD], false],
    ["few samples below the fast ratio", { fastMinSamples: 2, fastErrorRatioPercent: 50 }, [GOOD, GOOD, BAD], false],
    ["few samples exactly at the fast ratio", { fastMinSamples: 2, fastErrorRatioPercent: 50 }, [GOOD, BAD], true],
    ["one sample too few for the fast ratio", { fastMinSamples: 2, fastErrorRatioPercent: 50 }, [BAD], false],
    ["the fast ratio, if 0 samples turn it off", { fastMinSamples: 0, fastErrorRatioPercent: 50 }, [BAD, BAD], false],
    [
      "a success that keeps the ratio above its threshold",
      { minSamples: 2, errorRatioPercent: 20 },
      [BAD, GOOD],
      false,
    ],
  ])("on %s", (_, policy, statuses, opens) => {
    const state = after({ ...POLICY, ...policy }, statuses);
    expect(isOpen(state)).toBe(opens);
    if (opens) expect(state).toEqual(openBreaker(BAD, START + statuses.length - 1));
  });

  test.each([
    [199, false],
    [200, true],
    [399, true],
    [400, false],
    [428, false],
    [429, true],
    [100, false],
    [503, true],
  ])("counts the status %i: %s", (status, counts) => {
    expect(isCounted(status, POLICY)).toBe(counts);
    const before = after(POLICY, [BAD]);
    const next = reportTo(before, { status, isProbe: false }, START + 1, POLICY);
    expect(next === before).toBe(!counts);
    expect(next.errors + next.successes).toBe(counts ? 2 : 1);
  });

  test.each([
    ["at the end of the window still belongs to it", POLICY.windowMs, true],
    ["after the window starts the next one", POLICY.windowMs + 1, false],
  ])("a report %s", (_, ms, isSame) => {
    const policy = { ...POLICY, consecutiveErrors: 2 };
    const next = reportTo(after(policy, [BAD]), { status: BAD, isProbe: false }, START + ms, policy);
    expect(isOpen(next)).toBe(isSame);
    if (!isSame) expect(next).toMatchObject({ windowStartAt: START + ms, errors: 1, successes: 0, consecutive: 1 });
  });

  test("keeps its counts as long as a report could still belong to their window, and then holds nothing", () => {
    const state = after(POLICY, [GOOD]);
    expect(isPristine(state, START + 1, POLICY)).toBe(false);
    expect(isPristine(state, START + POLICY.windowMs, POLICY)).toBe(false);
    expect(isPristine(state, START + POLICY.windowMs + 1, POLICY)).toBe(true);
    expect(isPristine(closeBreaker(), START, POLICY)).toBe(true);
  });

  test("is shown as closed, refuses no session, and never closes by itself", () => {
    const view = viewBreaker(after(POLICY, [BAD]), START);
    expect(view).toEqual({ phase: "closed" });
    expect(phaseFor(view, 500)).toBe("closed");
    expect(throttleFor(view, 500)).toBeUndefined();
    expect(closesAt(closeBreaker())).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("an open breaker", () => {
  const OPEN = openBreaker(BAD, START);

  test.each([
    [0, "open", 500],
    [499, "open", 1],
    [500, "half-open", undefined],
    [HOUR_MS - 1, "half-open", undefined],
    [HOUR_MS, "closed", undefined],
  ])("is, %i ms after it opened, %s for a session with a window of 500 ms", (ms, phase, retryInMs) => {
    const view = viewBreaker(OPEN, START + ms);
    expect(view).toEqual(phase === "closed" ? { phase } : { phase: "open", code: BAD, openForMs: ms });
    expect(phaseFor(view, 500)).toBe(phase);
    expect(throttleFor(view, 500)).toEqual(retryInMs === undefined ? undefined : { code: BAD, retryInMs });
  });

  test("refuses no session for longer than an hour, whatever its window is", () => {
    const view = viewBreaker(OPEN, START + HOUR_MS - 10);
    expect(throttleFor(view, 24 * HOUR_MS)).toEqual({ code: BAD, retryInMs: 10 });
    expect(closesAt(OPEN)).toBe(START + HOUR_MS);
  });

  test("is kept until it is closed, also after the window of its counts", () => {
    expect(isPristine(OPEN, START + HOUR_MS - 1, POLICY)).toBe(false);
    expect(isPristine(OPEN, START + HOUR_MS, POLICY)).toBe(true);
  });

  test.each([
    ["late answers before it is half open", POLICY.openMs - 1, false, [OPEN, OPEN]],
    ["answers from the instant on at which it is half open", POLICY.openMs, false, "counts"],
    ["the answer to a probe of a session with a shorter window", 1, true, "counts"],
  ] as const)("%s: ignored or counted", (_, ms, isProbe, expected) => {
    const now = START + ms;
    const [bad, good] = [504, 204].map((status) => reportTo(OPEN, { status, isProbe }, now, POLICY));
    expect([bad, good]).toEqual(expected === "counts" ? [openBreaker(504, now), closeBreaker()] : expected);
  });

  test("that opened exactly an hour ago counts an error as the first of a new window", () => {
    const policy = { ...POLICY, openMs: HOUR_MS };
    const report = { status: BAD, isProbe: false };
    expect(reportTo(OPEN, report, START + HOUR_MS - 1, policy)).toBe(OPEN);
    const now = START + HOUR_MS;
    expect(reportTo(OPEN, report, now, policy)).toEqual({
      ...closeBreaker(),
      windowStartAt: now,
      errors: 1,
      consecutive: 1,
    });
  });
});

/** A breaker that keeps every report, and counts them again each time. */
class NaiveBreaker {
  openedAt: number | undefined;
  #reports: { readonly at: number; readonly isError: boolean }[] = [];

  report(isError: boolean, now: number, policy: BreakerPolicy): void {
    if (this.openedAt !== undefined && now - this.openedAt >= HOUR_MS) this.openedAt = undefined;
    if (this.openedAt !== undefined) {
      if (now - this.openedAt < policy.openMs) return;
      this.openedAt = isError ? now : undefined;
      this.#reports = [];
      return;
    }
    const [first] = this.#reports;
    if (first !== undefined && now - first.at > policy.windowMs) this.#reports = [];
    this.#reports.push({ at: now, isError });
    if (!isError || !this.#isOver(policy)) return;
    this.openedAt = now;
    this.#reports = [];
  }

  #isOver(policy: BreakerPolicy): boolean {
    const samples = this.#reports.length;
    const errors = this.#reports.filter(({ isError }) => isError).length;
    const inARow = samples - 1 - this.#reports.findLastIndex(({ isError }) => !isError);
    const isOverRatio = (least: number, percent: number) =>
      least > 0 && samples >= least && 100 * errors >= percent * samples;
    return (
      (policy.consecutiveErrors > 0 && inARow >= policy.consecutiveErrors) ||
      isOverRatio(policy.minSamples, policy.errorRatioPercent) ||
      isOverRatio(policy.fastMinSamples, policy.fastErrorRatioPercent)
    );
  }
}

test("any reports open and close the breaker as a breaker does that counts all of them again each time", () => {
  const policies = fc.record({
    consecutiveErrors: fc.nat(4),
    minSamples: fc.nat(6),
    errorRatioPercent: fc.constantFrom(20, 25, 50),
    fastMinSamples: fc.nat(3),
    fastErrorRatioPercent: fc.constantFrom(50, 75, 100),
    openMs: fc.constantFrom(300, HOUR_MS),
  });
  const reports = fc.array(
    fc.record({ afterMs: fc.constantFrom(0, 100, 300, 1_000, 1_001, HOUR_MS), isError: fc.boolean() }),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(policies, reports, (changed, given) => {
      const policy = { ...POLICY, ...changed };
      const naive = new NaiveBreaker();
      let state = closeBreaker();
      let now = START;
      for (const { afterMs, isError } of given) {
        now += afterMs;
        state = reportTo(state, { status: isError ? BAD : GOOD, isProbe: false }, now, policy);
        naive.report(isError, now, policy);
        expect(state.openedAt).toBe(naive.openedAt);
      }
    }),
    { numRuns: 200 },
  );
});
