import type { BudgetRecord, Tail } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { accountOf, leaseOf, waiterOf } from "./host-under-test.ts";
import type { StoreUnderTest } from "./store-under-test.ts";

type Changed = NonNullable<StoreUnderTest["afterRestart"]>;

/** The whole book, with each record changed by `changed`. A store may return records in any order. */
function bookOf(tail: Tail, changed: Changed = (record) => record): Tail {
  if (tail.kind !== "book" || tail.book === undefined) throw new Error("Expected the whole book");
  const records = tail.book.records.map(changed);
  records.sort((a, b) => (a.kind + a.key < b.kind + b.key ? -1 : 1));
  return { ...tail, book: { ...tail.book, records } };
}

/** A budget in debt, with what was missing before its charges. */
function budgetAt(now: number): BudgetRecord {
  const lowest = { times: [now - 20, now - 10], levels: [0.1, 0.7] };
  const level = { spent: 12.5, at: now, fullAt: now - 50, lowest };
  return { kind: "budget", key: "tokens", limit: 10, perMs: 1_000, burst: 10, level };
}

export function restartCases(newHost: NewHost, subject: () => StoreUnderTest, skip: string | undefined): void {
  describe.skipIf(skip !== undefined)("a restart", () => {
    it("P6: finds every host as the last accepted commit left it, with its tag", async () => {
      const host = await newHost();
      await host.grant("a");
      const now = await host.now();
      const fence = host.head.fence + 1;
      await host.accept({
        head: { slots: Number.POSITIVE_INFINITY, fence, fullAt: now + 60_000, chargeLevel: 1 / 3 },
        puts: [
          waiterOf("b", now, { demand: { cost: { tokens: 0.1 } } }),
          { ...accountOf("b", now, 0.1 + 0.2), charged: 7.5 },
          leaseOf("c", fence, now, {
            charge: { at: now, costs: { tokens: 3 }, asked: { cost: { tokens: 3 } }, counted: 3 },
          }),
          budgetAt(now),
        ],
      });
      const { tag, tail } = await host.store.read(host.host, undefined);
      const store = await subject().restart?.();
      if (store === undefined) throw new Error("Expected `restart`, or a reason to skip it");
      const after = await store.read(host.host, undefined);
      expect([after.tag, bookOf(after.tail)]).toEqual([tag, bookOf(tail, subject().afterRestart)]);
      expect((await store.commit(await host.commitOf({ now: after.now }))).isOk).toBe(true);
    });
  });
}
