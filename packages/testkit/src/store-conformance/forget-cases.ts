import { type BookRecord, type Head, type HostPolicy, resolveHost, resolveOptions } from "@slotkeeper/queue";
import { Book, mayForget } from "@slotkeeper/queue/internals";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { leaseOf, offerOf, sessionOf, waiterOf } from "./host-under-test.ts";

const IDLE_MS = 90_000;
const CLOSED = { code: 0, errors: 0, successes: 0, consecutive: 0 };
const { policy: POLICY } = resolveHost(resolveOptions({}), undefined);

/** Something that may keep a host. `at` returns the time that is this long before the cleanup. */
type Part = (
  at: (agoMs: number) => number,
  fence: number,
) => { readonly head?: Partial<Head>; readonly put?: BookRecord };

/** Close to each of the times that the rule compares. */
const agoMs = fc
  .tuple(fc.constantFrom(0, 1_000, 10_000, 60_000, 599_000, 600_000, 3_600_000), fc.constantFrom(-1, 0, 1))
  .map(([ms, more]) => ms + more);
const oneTime = (part: (ms: number) => Part) => agoMs.map(part);
const twoTimes = (part: (first: number, second: number) => Part) =>
  fc.tuple(agoMs, agoMs).map(([first, second]) => part(first, second));

function limitsOf(more: Partial<HostPolicy>): BookRecord {
  return { kind: "limits", key: "", policy: { ...POLICY, ...more }, loadedAt: 0, hostname: undefined };
}

const part: fc.Arbitrary<Part> = fc.oneof(
  twoTimes((ended, kept) => (at, fence) => ({
    put: leaseOf("l", fence, at(IDLE_MS), { endsAt: at(ended), keepUntil: at(kept) }),
  })),
  oneTime((ms) => (at) => ({ put: offerOf("o", at(IDLE_MS), at(ms)) })),
  oneTime((ms) => (at) => ({ put: waiterOf("w", at(IDLE_MS), { deadlineAt: at(ms) }) })),
  oneTime((kept) => (at) => ({ put: sessionOf("e", at(kept)) })),
  twoTimes((kept, ended) => (at) => ({ put: sessionOf("e", at(kept), at(ended)) })),
  oneTime((ms) => (at) => ({ put: { kind: "cooldown", key: "b", until: at(ms) } })),
  oneTime((ms) => (at) => ({ head: { forgottenAt: at(ms) } })),
  oneTime((ms) => (at) => ({ head: { fullAt: at(ms) } })),
  oneTime((ms) => (at) => ({ head: { breaker: { ...CLOSED, openedAt: at(ms) } } })),
  oneTime((ms) => (at) => ({ head: { breaker: { ...CLOSED, windowStartAt: at(ms) } } })),
  oneTime((ms) => (at) => ({ head: { lastEndAt: at(ms) }, put: limitsOf({ smoothMs: 1_000 }) })),
  oneTime((ms) => (at) => ({ head: { lastEndAt: at(ms) }, put: limitsOf({ smoothMs: 0 }) })),
  fc.constant<Part>(() => ({ put: { ...limitsOf({}), live: { slots: 2 } } as BookRecord })),
);

export function forgetCases(newHost: NewHost): void {
  describe("cleanup", () => {
    it("forgets exactly the hosts that a decision may forget (mayForget)", async () => {
      const seen = new Set<boolean>();
      const property = fc.asyncProperty(fc.array(part, { maxLength: 2 }), async (parts) => {
        const host = await newHost();
        const now = await host.now();
        const fence = host.head.fence + 1;
        const given = parts.map((one) => one((ms) => now + IDLE_MS - ms, fence));
        const puts = new Map(given.flatMap(({ put }) => (put === undefined ? [] : [[put.kind, put] as const])));
        const head: Partial<Head> = Object.assign({ fence, slots: 3 }, ...given.map((one) => one.head));
        await host.accept({ head, puts: [...puts.values()], now });
        await host.pass(IDLE_MS);
        const image = await host.book();
        if (image === undefined) throw new Error("Expected the store to have the host");
        const isForgotten = mayForget(Book.of(host.host, host.tag, image), await host.now());
        expect((await host.store.cleanup({ idleMs: IDLE_MS })).failures).toEqual([]);
        expect((await host.store.hostKeys()).includes(host.host)).toBe(!isForgotten);
        if (!isForgotten) await host.forget();
        seen.add(isForgotten);
      });
      await fc.assert(property, { numRuns: 150 });
      expect(seen.size).toBe(2);
    });
  });
}
