import type { CommitNotice } from "@slotkeeper/queue";
import { describe, expect, it, vi } from "vitest";
import type { NewHost } from "./describe-host-store.ts";
import { accountOf, type HostUnderTest } from "./host-under-test.ts";

/**
 * Sends commits that wake the instance until the first notification arrives, because a store may need a moment to
 * connect.
 */
async function untilItListens(host: HostUnderTest, instance: string, received: CommitNotice[]): Promise<void> {
  await vi.waitFor(
    async () => {
      await host.accept({ wake: [instance] });
      await vi.waitFor(() => expect(received.length).toBeGreaterThan(0), { timeout: 200 });
    },
    { timeout: 10_000 },
  );
  await vi.waitFor(() => expect(received.at(-1)?.tag).toBe(host.tag));
}

export function pushCases(newHost: NewHost, skip: string | undefined): void {
  describe.skipIf(skip !== undefined)("push", () => {
    it("sends the commit to a woken instance, with the base that it applies to", async () => {
      const host = await newHost();
      const received: CommitNotice[] = [];
      const instance = `${host.host}-woken`;
      const stop = host.other.watch(instance, (notice) => received.push(notice));
      await untilItListens(host, instance, received);
      received.length = 0;
      const commit = await host.commitOf({ puts: [accountOf("b", host.head.now, 0.1)], wake: [instance, "elsewhere"] });
      await host.store.commit(commit);
      const { base, tag, changes } = commit;
      await vi.waitFor(() => expect(received).toEqual([{ host: host.host, base, tag, changes }]));
      stop();
    });

    it("names only the host when the commit is too large", async () => {
      const host = await newHost();
      const received: CommitNotice[] = [];
      const instance = `${host.host}-large`;
      const stop = host.other.watch(instance, (notice) => received.push(notice));
      await untilItListens(host, instance, received);
      received.length = 0;
      const puts = Array.from({ length: 200 }, (_, at) => accountOf(`bucket ${at}`, host.head.now));
      await host.accept({ puts, wake: [instance] });
      await vi.waitFor(() => expect(received.map((notice) => notice.host)).toEqual([host.host]));
      stop();
    });

    it("sends nothing to an instance that is not woken, and nothing after it stopped watching", async () => {
      const host = await newHost();
      const [received, others]: [CommitNotice[], CommitNotice[]] = [[], []];
      const instance = `${host.host}-received`;
      const stopOther = host.other.watch(`${host.host}-other`, (notice) => others.push(notice));
      const stop = host.other.watch(instance, (notice) => received.push(notice));
      await untilItListens(host, instance, received);
      stopOther();
      await host.accept({ wake: [`${host.host}-other`, instance] });
      await vi.waitFor(() => expect(received.at(-1)?.tag).toBe(host.tag));
      expect(others).toEqual([]);
      stop();
    });
  });
}
