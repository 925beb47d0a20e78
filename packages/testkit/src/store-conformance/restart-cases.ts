import type { Tail } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { accountOf, waiterOf } from "./host-under-test.ts";
import type { StoreUnderTest } from "./store-under-test.ts";

type Changed = NonNullable<StoreUnderTest["afterRestart"]>;

/** The whole book, with each record changed by `changed`. A store may return records in any order. */
function bookOf(tail: Tail, changed: Changed = (record) => record): Tail {
  if (tail.kind !== "book" || tail.book === undefined) throw new Error("Expected the whole book");
  const records = tail.book.records.map(changed);
  records.sort((a, b) => (a.kind + a.key < b.kind + b.key ? -1 : 1));
  return { ...tail, book: { ...tail.book, records } };
}

export function restartCases(newHost: NewHost, subject: () => StoreUnderTest, skip: string | undefined): void {
  describe.skipIf(skip !== undefined)("a restart", () => {
    it("P6: finds every host as the last accepted commit left it, with its tag", async () => {
      const host = await newHost();
      await host.grant("a");
      const now = await host.now();
      await host.accept({
        head: { slots: Number.POSITIVE_INFINITY },
        puts: [waiterOf("b", now), accountOf("b", now, 0.1 + 0.2)],
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
