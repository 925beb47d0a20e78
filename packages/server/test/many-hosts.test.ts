import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { describe, expect, it } from "vitest";
import { type Fixture, openWith, startFixture } from "./service-fixture.ts";

/** `scripts/silence.mjs` measures how long such calls block the service. */
const COUNT = 9_500;
const keyOf = (at: number) => `key-${(at * 7919) % COUNT}`;

/** A service whose store has many hosts from an earlier process. */
async function withHosts(): Promise<Fixture> {
  const seed = new MemoryStore({ clock: realClock });
  let ids = 0;
  const queue = new FairQueue({
    store: seed,
    clock: realClock,
    newSessionId: () => `${ids++}`,
    newSecret: () => `${ids++}`,
    instance: "earlier",
  });
  await queue.operate({ kind: "breaker", host: "x", isOpen: false });
  queue.close();
  const [image] = seed.images();
  if (image === undefined) throw new Error("expected a host");
  const hosts = Array.from({ length: COUNT }, (_, at) => ({ ...image, host: keyOf(at) }));
  return startFixture({ open: openWith((clock) => new MemoryStore({ clock, hosts })) });
}

describe("a service with many hosts", () => {
  it("returns each of them once, in the order of their keys, together with those that only this instance knows", async () => {
    const fixture = await withHosts();
    await fixture.take({ hostname: undefined, hostnameHash: "key-1" });
    await fixture.take({ hostname: undefined, hostnameHash: "a-new-host" });
    const expected = ["a-new-host", ...Array.from({ length: COUNT }, (_, at) => keyOf(at))].sort();
    for (const [offset, limit] of [
      [0, 3],
      [4_711, 1_000],
      [COUNT - 1, 10],
    ] as const) {
      const { text } = await fixture.request("GET", `/api/v0/state?offset=${offset}&limit=${limit}`);
      const { total, hosts } = JSON.parse(text) as { total: number; hosts: { host: string }[] };
      expect(total).toBe(COUNT + 1);
      expect(hosts.map(({ host }) => host)).toEqual(expected.slice(offset, offset + limit));
    }
  });

  it("refuses an operator's action for an unknown host, and accepts it for one that only the store knows", async () => {
    const fixture = await withHosts();
    const act = (host: string) =>
      fixture.request("POST", `/api/v0/hosts/${host}/breaker?by=key`, { body: '{"state":"closed"}' });
    expect((await act("nowhere")).status).toBe(404);
    expect((await act(keyOf(77))).status).toBe(204);
  });
});
