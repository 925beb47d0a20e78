import type { Beat } from "@slotkeeper/queue";
import { describe, expect, it } from "vitest";
import type { NewHost } from "./describe-host-store.ts";

const ABOUT = { url: "http://one.example", weight: 1.5, isNew: true };

export function beatCases(newHost: NewHost): void {
  const beatOf = (instance: string, more: Partial<Beat> = {}): Beat => {
    return { instance, ttlMs: 5_000, about: ABOUT, hosts: [], ...more };
  };

  describe("beats", () => {
    it("report which instances are alive, for how long, and their information", async () => {
      const host = await newHost();
      const [one, two] = [`${host.host}-one`, `${host.host}-two`];
      const living = async (names = [one, two]) =>
        (await host.store.instances()).filter(({ instance }) => names.includes(instance));
      await host.store.beat(beatOf(one));
      await host.pass(2_000);
      const { now, instances } = await host.other.beat(beatOf(two, { ttlMs: 1_000, about: {} }));
      expect(now).toBe(await host.now());
      expect(instances.filter(({ instance }) => [one, two].includes(instance))).toEqual([
        { instance: one, seenAgoMs: 2_000, about: ABOUT },
        { instance: two, seenAgoMs: 0, about: {} },
      ]);
      await host.pass(1_500);
      expect(await living()).toEqual([{ instance: one, seenAgoMs: 3_500, about: ABOUT }]);
      await host.store.beat(beatOf(one, { about: {} }));
      expect(await living()).toEqual([{ instance: one, seenAgoMs: 0, about: {} }]);
      await host.store.beat(beatOf(one, { ttlMs: 0 }));
      expect(await living()).toEqual([]);
    });

    it("return the hosts that others have changed, created or forgotten, and no others", async () => {
      const [same, changed, made, gone, absent] = [
        await newHost(),
        await newHost(),
        await newHost(),
        await newHost(),
        await newHost(),
      ];
      const known = [await same.accept(), await changed.accept(), undefined, await gone.accept(), undefined];
      await changed.accept();
      await made.accept();
      await gone.forget();
      const hosts = [same, changed, made, gone, absent].map(({ host }, at) => [host, known[at]] as const);
      const reply = await same.store.beat(beatOf("beats", { hosts }));
      expect([...reply.changed].sort()).toEqual([changed.host, made.host, gone.host].sort());
    });

    it("change no host", async () => {
      const host = await newHost();
      const tag = await host.accept();
      await host.store.beat(beatOf("one", { hosts: [[host.host, "1.old"]] }));
      expect((await host.store.read(host.host, tag)).tag).toBe(tag);
    });
  });
}
