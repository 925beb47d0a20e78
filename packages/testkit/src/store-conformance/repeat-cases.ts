import { TAIL_LENGTH } from "@slotkeeper/queue/internals";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { accountOf, leaseOf } from "./host-under-test.ts";

export function repeatCases(newHost: NewHost): void {
  describe("a commit that is sent again", () => {
    it("P4, P8: is answered ok and takes effect once, also as the first of a host and after its time", async () => {
      for (const isKnown of [false, true]) {
        const host = await newHost();
        if (isKnown) await host.accept();
        const fence = host.head.fence + 1;
        const now = await host.now();
        const commit = await host.commitOf({ head: { fence }, puts: [leaseOf("a", fence, now)], now });
        expect(await host.store.commit(commit)).toMatchObject({ isOk: true });
        await host.pass(5_000);
        expect(await host.other.commit(commit)).toMatchObject({ isOk: true });
        expect(await host.store.read(host.host, commit.tag)).toMatchObject({
          tail: { changes: { puts: [], dels: [] } },
        });
        expect(await host.names()).toEqual(["lease slot_a"]);
      }
    });

    it("P4: is answered ok if no other instance needs it", async () => {
      const host = await newHost();
      await host.accept();
      const commit = await host.commitOf({ puts: [accountOf("b", host.head.now, 1)], hasOthers: false });
      await host.store.commit(commit);
      host.tag = commit.tag;
      await host.accept({ puts: [accountOf("b", host.head.now, 2)] });
      expect(await host.store.commit(commit)).toMatchObject({ isOk: true });
      expect((await host.book())?.records).toEqual([accountOf("b", host.head.now, 2)]);
    });

    it("P4: is answered ok if an instance that is alone has committed since", async () => {
      const host = await newHost();
      await host.accept();
      const commit = await host.commitOf({ puts: [accountOf("b", host.head.now, 1)] });
      await host.store.commit(commit);
      host.tag = commit.tag;
      await host.accept({ puts: [accountOf("b", host.head.now, 2)], hasOthers: false });
      expect(await host.store.commit(commit)).toMatchObject({ isOk: true });
      expect((await host.book())?.records).toEqual([accountOf("b", host.head.now, 2)]);
    });

    it("P4: is answered ok if others have committed since, and does not undo their changes", async () => {
      const host = await newHost();
      const commit = await host.commitOf({ puts: [accountOf("b", host.head.now, 1)] });
      await host.store.commit(commit);
      host.tag = commit.tag;
      await host.accept({ puts: [accountOf("b", host.head.now, 2)] });
      expect(await host.store.commit(commit)).toMatchObject({ isOk: true });
      expect((await host.book())?.records).toEqual([accountOf("b", host.head.now, 2)]);
    });

    it(`P4: is known as long as it is among the last ${TAIL_LENGTH}; after that it is a conflict with the whole book`, async () => {
      const host = await newHost();
      await host.accept();
      const commit = await host.commitOf({ puts: [accountOf("b", host.head.now, 1)] });
      await host.store.commit(commit);
      host.tag = commit.tag;
      for (let at = 1; at < TAIL_LENGTH; at++) await host.accept();
      expect(await host.store.commit(commit)).toMatchObject({ isOk: true });
      // A store may also find it as the base of the next commit.
      for (let at = 0; at < 2; at++) await host.accept();
      expect(await host.store.commit(commit)).toMatchObject({
        isOk: false,
        reason: "conflict",
        tail: { kind: "book" },
      });
    });
  });
}
