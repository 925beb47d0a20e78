import { TAIL_LENGTH } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { accountOf, type HostUnderTest } from "./host-under-test.ts";

/** Commits that each write one account, so that their order shows. */
async function commits(host: HostUnderTest, count: number): Promise<void> {
  for (let at = 1; at <= count; at++) await host.accept({ puts: [accountOf("b", host.head.now, at)] });
}

async function usesSince(host: HostUnderTest, since: string): Promise<number[] | "book"> {
  const { tail } = await host.other.read(host.host, since);
  if (tail.kind === "book") return "book";
  return tail.commits.map(({ puts }) => (puts[0]?.kind === "account" ? puts[0].usedMs : -1));
}

export function tailCases(newHost: NewHost): void {
  describe("the tail", () => {
    it("is empty for the last tag", async () => {
      const host = await newHost();
      const tag = await host.accept();
      expect(await host.store.read(host.host, tag)).toMatchObject({ tag, tail: { kind: "changes", commits: [] } });
    });

    it("has the commits since a tag, in order", async () => {
      const host = await newHost();
      const since = await host.accept();
      await commits(host, 3);
      expect(await usesSince(host, since)).toEqual([1, 2, 3]);
    });

    it(`has the last ${TAIL_LENGTH} commits, and no more`, async () => {
      const host = await newHost();
      const first = await host.accept();
      const second = await host.accept({ puts: [accountOf("b", host.head.now, 1)] });
      await commits(host, TAIL_LENGTH - 1);
      expect(await usesSince(host, first)).toHaveLength(TAIL_LENGTH);
      await host.accept({ puts: [accountOf("b", host.head.now, -7)] });
      expect(await usesSince(host, first)).toBe("book");
      const uses = await usesSince(host, second);
      expect(uses).toHaveLength(TAIL_LENGTH);
      expect(uses.at(-1)).toBe(-7);
      expect(await host.send({ base: first })).toMatchObject({ reason: "conflict", tail: { kind: "book" } });
    });

    it("may lack a commit that no other instance needs, but a read always gets from the given tag to the state", async () => {
      const host = await newHost();
      const first = await host.accept();
      await host.accept({ puts: [accountOf("b", host.head.now, 1)], isShared: false });
      const second = await host.accept({ puts: [accountOf("b", host.head.now, 2)] });
      await host.accept({ puts: [accountOf("c", host.head.now, 3)] });
      expect([[1, 2, 3], "book"]).toContainEqual(await usesSince(host, first));
      expect(await usesSince(host, second)).toEqual([3]);
      expect(await host.names()).toEqual(["account b", "account c"]);
    });

    it("has all commits after many that no other instance needed, and none from before them", async () => {
      const host = await newHost();
      const first = await host.accept();
      await commits(host, 3);
      for (let at = 0; at < TAIL_LENGTH + 6; at++) await host.accept({ isShared: false });
      const last = host.tag as string;
      expect(await usesSince(host, first)).toBe("book");
      await commits(host, 3);
      expect(await usesSince(host, last)).toEqual([1, 2, 3]);
      expect(await usesSince(host, first)).toBe("book");
    });

    it("does not accept a tag of a different history: the random part counts, not the number", async () => {
      const host = await newHost();
      const tag = await host.accept();
      await commits(host, 2);
      const [number] = tag.split(".");
      expect(await usesSince(host, `${number}.another`)).toBe("book");
      expect(await host.send({ base: `${number}.another` })).toMatchObject({ isOk: false, reason: "conflict" });
    });

    it("starts again after a host was forgotten", async () => {
      const host = await newHost();
      const old = await host.accept();
      await commits(host, 2);
      await host.forget();
      await host.pass(10);
      await host.startAfresh();
      await host.accept();
      expect(await usesSince(host, old)).toBe("book");
    });
  });
}
