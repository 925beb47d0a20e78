import type { BookRecord, Head } from "@slotkeeper/queue";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { anyHead, anyRecord } from "./any-record.ts";
import type { NewHost } from "./describe-host-store.ts";

const SLOTS = 100;

interface State {
  readonly fence: number;
  readonly now: number;
  readonly known: ReadonlyMap<string, BookRecord>;
}

/** Leases and offers as a decision makes them: the fence of a new lease is above the last one, and none has ended. */
function plausible(records: readonly BookRecord[], { fence, now, known }: State): BookRecord[] {
  const named = new Map(records.map((record) => [`${record.kind} ${record.key}`, record]));
  let last = fence;
  return [...named.values()].map((record) => {
    if (record.kind === "lease") {
      const before = known.get(`lease ${record.key}`);
      const own = before?.kind === "lease" ? before.fence : ++last;
      return { ...record, fence: own, grantedAt: now, endsAt: now + 30_000.5 };
    }
    if (record.kind === "offer") return { ...record, offeredAt: now, lapsesAt: now + 50.25 };
    return record;
  });
}

const byName = (records: readonly BookRecord[]) =>
  records.toSorted((a, b) => (`${a.kind} ${a.key}` < `${b.kind} ${b.key}` ? -1 : 1));

export function roundTripCases(newHost: NewHost): void {
  describe("what a commit wrote", () => {
    it("is what other instances read, since any tag and as a whole, whatever its values are", async () => {
      const property = fc.asyncProperty(
        fc.array(fc.array(anyRecord, { maxLength: 8 }), { minLength: 1, maxLength: 3 }),
        anyHead,
        fc.constantFrom(SLOTS, Number.POSITIVE_INFINITY),
        async (batches, fields, slots) => {
          const host = await newHost();
          const first = await host.accept({ head: { slots: SLOTS } });
          const expected = new Map<string, BookRecord>();
          for (const [at, batch] of batches.entries()) {
            const now = await host.now();
            const puts = plausible(batch, { fence: host.head.fence, now, known: expected });
            const fence = host.head.fence + puts.length;
            const head: Head = { ...host.head, ...fields, slots, fence, now };
            // Every second commit deletes what the one before it wrote.
            const dels = at % 2 === 0 ? [] : [...expected.values()].map(({ kind, key }) => [kind, key] as const);
            for (const [kind, key] of dels) expected.delete(`${kind} ${key}`);
            const kept = puts.filter(({ kind, key }) => !dels.some((del) => del[0] === kind && del[1] === key));
            for (const record of kept) expected.set(`${record.kind} ${record.key}`, record);
            await host.accept({ head, puts: kept, dels, now });
          }
          const whole = await host.book(host.other);
          expect(whole?.head).toEqual(host.head);
          expect(byName(whole?.records ?? [])).toEqual(byName([...expected.values()]));
          const { tail } = await host.other.read(host.host, first);
          // The totals of other tests must stay finite.
          await host.forget();
          if (tail.kind === "book") return;
          const { head, puts, dels } = tail.changes;
          expect(head).toEqual(host.head);
          expect(byName(puts)).toEqual(byName([...expected.values()]));
          expect(dels.filter(([kind, key]) => expected.has(`${kind} ${key}`))).toEqual([]);
        },
      );
      await fc.assert(property, { numRuns: 40 });
    });
  });
}
