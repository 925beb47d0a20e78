import { describe, expect, test } from "vitest";
import { Script } from "./script.ts";

/** 10 tokens per second, at most 10. */
const FACTS = { fairQueue: { maxSlotPerHost: 20, budgets: { tokens: { limit: 10, perSeconds: 1 } } } };

const spend = (tokens: number) => ({ cost: { tokens } });
const charged = (tokens: number) => ({ limit: 20, charged: { tokens } });

/** Each request is granted this much at this time, within ten milliseconds. */
function grants(list: readonly (readonly [at: number, tokens: number])[], facts: object = FACTS): Script {
  const script = new Script(facts);
  for (const [at, tokens] of list) {
    const session = script.session(spend(tokens)).granted(at, at + 10, charged(tokens));
    session.release(at + 20);
  }
  return script;
}

describe("HIST14: budgets", () => {
  test("no more than the burst and the refill is charged in any time", () => {
    expect(
      grants([
        [0, 10],
        [1_000, 10],
      ]).broken(),
    ).toEqual([]);
    expect(
      grants([
        [0, 10],
        [980, 10],
      ]).broken(),
    ).toEqual(["HIST14"]);
    const burst = { fairQueue: { maxSlotPerHost: 20, budgets: { tokens: { limit: 10, perSeconds: 1, burst: 20 } } } };
    expect(
      grants(
        [
          [0, 10],
          [100, 10],
        ],
        burst,
      ).broken(),
    ).toEqual([]);
  });

  test("what a release or a cancellation may give back does not count", () => {
    const settled = (used: number) => {
      const script = new Script(FACTS);
      script
        .session(spend(10))
        .granted(0, 10, charged(10))
        .release(20, 200, { used: { tokens: used } });
      script.session(spend(8)).granted(30, 40, charged(8)).release(50);
      return script.broken();
    };
    expect([settled(1), settled(5), settled(-1)]).toEqual([[], ["HIST14"], ["HIST14"]]);
    const canceled = new Script(FACTS);
    canceled.session(spend(10)).granted(0, 10, charged(10)).cancel(20, 21);
    canceled.session(spend(10)).granted(30, 40, charged(10)).release(50);
    expect(canceled.broken()).toEqual([]);
  });

  test("a debt is paid before the next grant", () => {
    const after = (at: number, releasedAt = 20) => {
      const script = new Script(FACTS);
      const first = script.session(spend(1)).granted(0, 10, charged(1));
      first.release(releasedAt, 200, { used: { tokens: 100 } });
      script
        .session(spend(10))
        .granted(at, at + 10, charged(10))
        .release(at + 20);
      return script.broken();
    };
    expect([after(900), after(1_020)]).toEqual([["HIST14"], []]);
    // The lease may have ended before.
    expect(after(30_100, 30_050)).toEqual([]);
  });

  test("a debt counts only if its release was answered fast enough to be committed", () => {
    const after = (answeredAt: number) => {
      const script = new Script(FACTS);
      const first = script.session(spend(1)).granted(0, 10, charged(1));
      first.release(20, 200, { used: { tokens: 100 } }, answeredAt);
      script.session(spend(10)).granted(500, 510, charged(10)).release(520);
      return script.broken();
    };
    expect([after(110), after(120)]).toEqual([["HIST14"], []]);
  });

  test("a debt does not count for its own grant, nor for others at the same time: they may have come before", () => {
    const script = new Script(FACTS);
    const first = script.session(spend(10)).granted(20, 20, charged(10));
    first.release(20, 200, { used: { tokens: 14 } });
    expect(script.broken()).toEqual([]);
    const shared = new Script(FACTS);
    shared
      .session(spend(1))
      .granted(0, 10, charged(1))
      .release(20, 200, { used: { tokens: 5 } });
    shared.session(spend(9)).granted(21, 21, charged(9)).release(30);
    expect(shared.broken()).toEqual([]);
  });

  test("a charge is the cost of the request, or the default", () => {
    const broken = (ask: object, tokens: number) => {
      const script = new Script(FACTS);
      script.session(ask).granted(0, 10, charged(tokens)).release(20);
      return script.broken();
    };
    expect([broken(spend(2), 2), broken({}, 1)]).toEqual([[], []]);
    expect([broken(spend(2), 3), broken({}, 2)]).toEqual([["HIST14"], ["HIST14"]]);
  });

  test("lost commits excuse it, and a budget in shadow mode is not judged", () => {
    const list = [
      [0, 10],
      [500, 10],
    ] as const;
    expect(grants(list).fault("lost-commits", 200, 300).broken()).toEqual([]);
    const shadow = { limit: 10, perSeconds: 1, shadow: true };
    expect(grants(list, { fairQueue: { maxSlotPerHost: 20, budgets: { tokens: shadow } } }).broken()).toEqual([]);
  });
});

describe("HIST14: budgets of a key", () => {
  const tokens = { limit: 10, perSeconds: 1 };
  const at = (keys: object, ...values: readonly string[]) => {
    const script = new Script({ fairQueue: { maxSlotPerHost: 20, keys: { tenant: keys } } });
    for (const [index, tenant] of values.entries())
      script
        .session({ ...spend(10), keys: { tenant } })
        .granted(index, 10 + index, charged(10))
        .release(20 + index);
    return script.broken();
  };

  test("each value has its own", () => {
    expect(at({ budgets: { tokens } }, "acme", "other")).toEqual([]);
    expect(at({ budgets: { tokens } }, "acme", "acme")).toEqual(["HIST14"]);
    const own = { acme: { budgets: { tokens: { ...tokens, burst: 20 } } } };
    expect(at({ budgets: { tokens }, for: own }, "acme", "acme")).toEqual([]);
  });

  test("in shadow mode they are not judged, unless a budget says otherwise", () => {
    expect(at({ budgets: { tokens }, shadow: true }, "acme", "acme")).toEqual([]);
    expect(at({ budgets: { tokens: { ...tokens, shadow: false } }, shadow: true }, "acme", "acme")).toEqual(["HIST14"]);
  });
});
