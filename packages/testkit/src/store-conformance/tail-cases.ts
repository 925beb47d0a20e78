import { TAIL_LENGTH } from "@slotkeeper/queue/internals";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { accountOf, type HostUnderTest } from "./host-under-test.ts";

/** Commits that each write an account of their own. */
async function commits(host: HostUnderTest, count: number): Promise<void> {
  for (let at = 1; at <= count; at++) await host.accept({ puts: [accountOf(`b${at}`, host.head.now)] });
}

/** The keys of the records that were written since a tag, then those that were deleted. */
async function changedSince(host: HostUnderTest, since: string): Promise<[string[], string[]] | "book"> {
  const { tail, tag } = await host.other.read(host.host, since);
  expect(tag).toBe(host.tag);
  if (tail.kind === "book") return "book";
  expect(tail.changes.head).toEqual(host.head);
  return [tail.changes.puts.map(({ key }) => key).sort(), tail.changes.dels.map(([, key]) => key).sort()];
}

const NOTHING = [[], []];

export function tailCases(newHost: NewHost): void {
  describe("what changed since a tag", () => {
    it("is nothing for the last tag", async () => {
      const host = await newHost();
      expect(await changedSince(host, await host.accept())).toEqual(NOTHING);
    });

    it("is every record that was written, once and as it is now, and every record that is gone", async () => {
      const host = await newHost();
      await host.accept({ puts: [accountOf("same", 1), accountOf("gone", 1), accountOf("back", 1)] });
      const since = host.tag as string;
      await host.accept({ puts: [accountOf("new", 1), accountOf("brief", 1)], dels: [["account", "back"]] });
      await host.accept({
        puts: [accountOf("new", 2), accountOf("back", 2)],
        dels: [
          ["account", "gone"],
          ["account", "brief"],
        ],
      });
      expect(await changedSince(host, since)).toEqual([
        ["back", "new"],
        ["brief", "gone"],
      ]);
      const { tail } = await host.store.read(host.host, since);
      const puts = tail.kind === "changes" ? tail.changes.puts : [];
      expect(puts.toSorted((a, b) => (a.key < b.key ? -1 : 1))).toEqual([accountOf("back", 2), accountOf("new", 2)]);
    });

    it(`is known for ${TAIL_LENGTH} commits, and no more`, async () => {
      const host = await newHost();
      const first = await host.accept();
      const second = await host.accept({ puts: [accountOf("second", 1)] });
      await commits(host, TAIL_LENGTH - 1);
      expect((await changedSince(host, first))[0]).toHaveLength(TAIL_LENGTH);
      await host.accept({ puts: [accountOf("last", 1)] });
      expect(await changedSince(host, first)).toBe("book");
      const [written] = await changedSince(host, second);
      expect(written).toHaveLength(TAIL_LENGTH);
      expect(written).toContain("last");
      expect(await host.send({ base: first })).toMatchObject({ reason: "conflict", tail: { kind: "book" } });
    });

    it("may be the whole book after a commit that no other instance needs, but always leads to the state", async () => {
      const host = await newHost();
      const first = await host.accept();
      await host.accept({ puts: [accountOf("b", 1)], hasOthers: false });
      const second = await host.accept({ puts: [accountOf("b", 2)] });
      await host.accept({ puts: [accountOf("c", 3)] });
      expect([[["b", "c"], []], "book"]).toContainEqual(await changedSince(host, first));
      expect(await changedSince(host, second)).toEqual([["c"], []]);
      expect(await host.names()).toEqual(["account b", "account c"]);
    });

    it("is known after many commits that no other instance needed, but not from before them", async () => {
      const host = await newHost();
      const first = await host.accept();
      await commits(host, 3);
      for (let at = 0; at < TAIL_LENGTH + 6; at++) await host.accept({ hasOthers: false });
      const last = host.tag as string;
      expect(await changedSince(host, first)).toBe("book");
      await commits(host, 3);
      expect(await changedSince(host, last)).toEqual([["b1", "b2", "b3"], []]);
      expect(await changedSince(host, first)).toBe("book");
    });

    it("is the whole book for a tag of a different history: the random part counts, not the number", async () => {
      const host = await newHost();
      const tag = await host.accept();
      await commits(host, 2);
      for (const number of [Number.parseInt(tag, 10), Number.parseInt(host.tag ?? "", 10), 1_000_000]) {
        expect(await changedSince(host, `${number}.another`)).toBe("book");
        expect(await host.send({ base: `${number}.another` })).toMatchObject({ isOk: false, reason: "conflict" });
      }
    });

    it("is the whole book after a host was forgotten", async () => {
      const host = await newHost();
      const old = await host.accept();
      await commits(host, 2);
      await host.forget();
      await host.pass(10);
      await host.startAfresh();
      await host.accept();
      expect(await changedSince(host, old)).toBe("book");
    });
  });
}
