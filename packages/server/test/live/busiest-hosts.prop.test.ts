import { BusiestHosts } from "@slotkeeper/server/internals";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

const make = (most: number, candidates: number) => {
  const made: string[] = [];
  const hosts = new BusiestHosts({
    most,
    candidates,
    create: (host) => {
      made.push(host);
      return { host };
    },
  });
  return { hosts, made, tracked: () => [...hosts.entries()].map(([host]) => host).sort() };
};

describe("the busiest hosts", () => {
  it("BUSY1: are never more than allowed, in any order of use, watching and election", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constantFrom("use", "watch"), host: fc.nat(30) }),
      fc.record({ kind: fc.constant("elect"), host: fc.constant(0) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 5 }), (steps, most) => {
        const { hosts } = make(most, 7);
        for (const { kind, host } of steps) {
          if (kind === "use") hosts.use(`h${host}`);
          else if (kind === "watch") expect(hosts.watch(`h${host}`)).toEqual({ host: `h${host}` });
          else hosts.elect();
          expect(hosts.size).toBeLessThanOrEqual(most);
        }
      }),
    );
  });

  it("BUSY2: while there is room, a host is kept from its first use, with the same entry", () => {
    const { hosts, made } = make(3, 10);
    const kept = ["a", "b", "c"].map((host) => hosts.use(host));
    expect(["a", "b", "c"].map((host) => hosts.use(host))).toEqual(kept);
    expect(hosts.use("d")).toBeUndefined();
    expect(made).toEqual(["a", "b", "c"]);
  });

  it("BUSY3: a host with more than its share of all uses is elected, even if 100,000 others are used once in between", () => {
    const { hosts, tracked } = make(5, 100);
    for (let at = 0; at < 100_000; at++) {
      hosts.use(`once-${at}`);
      if (at % 20 === 0) for (const busy of ["x", "y", "z"]) hosts.use(busy);
    }
    hosts.elect();
    expect(tracked()).toEqual(expect.arrayContaining(["x", "y", "z"]));
    expect(hosts.size).toBe(5);
  });

  it("BUSY3: for any history, a host with more than one in candidates + 1 of the uses is counted", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(40), { maxLength: 400 }), (uses) => {
        const { hosts, tracked } = make(6, 6);
        for (const host of uses) hosts.use(`h${host}`);
        hosts.elect();
        const count = (host: number) => uses.filter((used) => used === host).length;
        for (const host of new Set(uses)) {
          if (count(host) > (1.5 * uses.length) / 7 + 1) expect(tracked()).toContain(`h${host}`);
        }
      }),
    );
  });

  it("BUSY4: two hosts with equal use do not take turns; one with twice the use replaces the other", () => {
    const { hosts, tracked } = make(1, 10);
    hosts.use("a");
    for (let round = 0; round < 5; round++) {
      for (const host of ["a", "b", "b"].slice(0, round < 4 ? 2 : 3)) for (let n = 0; n < 10; n++) hosts.use(host);
      hosts.elect();
      expect(tracked()).toEqual(round < 4 ? ["a"] : ["b"]);
    }
  });

  it("BUSY5: an unused host is dropped unless it is watched", () => {
    const { hosts, tracked } = make(3, 10);
    hosts.use("forgotten");
    hosts.use("watched");
    for (let round = 0; round < 20; round++) {
      hosts.watch("watched");
      hosts.elect();
    }
    expect(tracked()).toEqual(["watched"]);
  });
});
