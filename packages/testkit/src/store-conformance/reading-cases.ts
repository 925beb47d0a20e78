import { expect, test } from "vitest";
import type { NewHost } from "./describe-slot-store.ts";

/** What a store tells of itself. The optional calls are tested where a store has them. */
export function readingCases(newHost: NewHost): void {
  test("a snapshot of some hosts has those, with slots as their holders have them, and no token", async () => {
    const [one, other] = [newHost({ slots: 2 }), newHost({ slots: 2 })];
    const slot = await one.take("a-1");
    await other.take("a-1");
    await one.pass(20);
    const { hosts } = await one.store.snapshot({ hosts: [one.host] });
    const found = hosts.find(({ host }) => host === one.host);
    expect(found).toMatchObject({ slots: 2, inFlight: 1, leases: [{ slot: slot.fence, bucket: "a" }] });
    expect(found?.leases[0]?.heldMs ?? 20).toBeGreaterThanOrEqual(20);
    expect(JSON.stringify(hosts)).not.toContain(slot.slotToken);
    const unknown = await one.store.snapshot({ hosts: ["conformance-nobody"] });
    expect(unknown.hosts.some(({ host }) => host === "conformance-nobody")).toBe(false);
  });

  test("a release tells how long the slot was held, where the store knows it", async () => {
    const host = newHost();
    const slot = await host.take("a-1");
    await host.pass(50);
    const reply = await host.release(slot.slotToken);
    if (reply.isReleased && reply.heldMs !== undefined) expect(reply.heldMs).toBeGreaterThanOrEqual(50);
    else expect(reply.isReleased).toBe(true);
  });

  test("a lease that ran out unreleased is told once, by the call that found it", async () => {
    const host = newHost({ slots: 1, leaseMs: 60 });
    await host.take("a-1");
    await host.pass(80);
    const { verdicts, reclaimed } = await host.try(["b-1"]);
    expect(verdicts[0]?.status).toBe("ACQUIRED");
    if (reclaimed !== undefined) expect(reclaimed).toBeGreaterThanOrEqual(1);
    expect((await host.try(["c-1"])).reclaimed ?? 0).toBe(0);
  });

  test("names and sums of all hosts, where the store has them, agree with its snapshot", async () => {
    const host = newHost({ slots: 3, smoothMs: 0 });
    const { store } = host;
    await host.take("a-1");
    await host.register([host.waiter("b-1")]);
    await store.operate({ kind: "breaker", host: host.host, policy: host.policy, isOpen: true });
    const { hosts } = await store.snapshot();
    if (store.hostKeys !== undefined) expect(await store.hostKeys()).toContain(host.host);
    if (store.totals === undefined) return;
    const totals = await store.totals();
    expect(totals.hosts).toBeGreaterThanOrEqual(1);
    expect(totals.slots).toBe(hosts.reduce((sum, { slots }) => sum + slots, 0));
    expect(totals.waiting).toBeGreaterThanOrEqual(1);
    expect(totals.open).toBeGreaterThanOrEqual(1);
    expect(totals.inFlight).toBeGreaterThanOrEqual(1);
    await store.operate({ kind: "breaker", host: host.host, policy: host.policy, isOpen: false });
  });

  test("an instance that says it lives is known until its time is over, with what it last said; or until it leaves", async () => {
    const { store, pass, host } = newHost();
    if (store.announce === undefined || store.instances === undefined) return;
    const [steady, silent, leaving] = [`${host}-steady`, `${host}-silent`, `${host}-leaving`];
    const known = async () => (await store.instances?.())?.filter(({ instance }) => instance.startsWith(host)) ?? [];
    for (const instance of [steady, silent, leaving]) {
      await store.announce({ instance, ttlMs: 300, about: { version: "1", heldPolls: 1, isOld: true } });
    }
    expect((await known()).map(({ instance }) => instance).sort()).toEqual([leaving, silent, steady]);
    await store.announce({ instance: leaving, ttlMs: 0, about: {} });
    await pass(200);
    await store.announce({ instance: steady, ttlMs: 300, about: { version: "2", heldPolls: 7 } });
    await pass(150);
    const left = await known();
    expect(left).toMatchObject([{ instance: steady, about: { version: "2", heldPolls: 7 } }]);
    expect(left[0]?.about).not.toHaveProperty("isOld");
    expect(left[0]?.seenAgoMs).toBeGreaterThanOrEqual(150);
  });
}
