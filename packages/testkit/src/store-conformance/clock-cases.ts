import { CLOCK_SLACK_MS } from "@slotkeeper/queue/internals";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";

export function clockCases(newHost: NewHost): void {
  describe("store time", () => {
    it("P5: a commit is neither ahead of the store's clock nor more than a second behind", async () => {
      for (const isKnown of [false, true]) {
        const host = await newHost();
        if (isKnown) await host.accept();
        await host.pass(10_000);
        const now = await host.now();
        for (const wrong of [now + 2, now - CLOCK_SLACK_MS - 2]) {
          expect(await host.send({ now: wrong })).toMatchObject({ isOk: false, reason: "clock", now });
        }
        host.head = { ...host.head, fence: Math.floor(now * 1000) };
        await host.accept({ now: now - CLOCK_SLACK_MS + 1 });
        await host.accept({ now });
      }
    });

    it("P5: the time of a host does not advance while the clock is behind it", async () => {
      const host = await newHost();
      await host.pass(60_000);
      const now = await host.now();
      host.head = { ...host.head, fence: Math.floor(now * 1000) };
      await host.accept({ now });
      await host.pass(-30_000);
      expect((await host.store.read(host.host, host.tag)).now).toBe(now);
      expect(await host.send({ now: now - 30_000 })).toMatchObject({ isOk: false, reason: "clock", now });
      await host.accept({ now });
      await host.pass(30_000);
    });

    it("P5: a commit slightly behind another does not set the time back", async () => {
      const host = await newHost();
      const now = await host.now();
      await host.accept({ now });
      await host.accept({ now: now - 500 });
      await host.pass(-400);
      expect((await host.store.read(host.host, host.tag)).now).toBe(now);
      await host.pass(400);
    });
  });
}
