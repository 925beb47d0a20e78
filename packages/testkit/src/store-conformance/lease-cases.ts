import { expect, test } from "vitest";
import type { NewHost } from "./describe-slot-store.ts";

/** S1, S2, S3, S5: limits, owners, fences, ends. */
export function leaseCases(newHost: NewHost): void {
  test("S1: no more leases than slots, however many ask at once", async () => {
    const host = newHost({ slots: 3 });
    const calls = Array.from({ length: 8 }, (_, index) => host.statuses([`b${index}-x`, `b${index}-y`]));
    const granted = (await Promise.all(calls)).flat().filter((status) => status === "ACQUIRED");
    expect(granted).toHaveLength(3);
  });

  test("S1: no more leases of a bucket than its limit, however many ask at once", async () => {
    const host = newHost({ slots: 5, slotsPerBucket: 2 });
    const calls = Array.from({ length: 6 }, (_, index) => host.statuses([`a-${index}`]));
    const statuses = (await Promise.all(calls)).flat();
    expect(statuses.filter((status) => status === "ACQUIRED")).toHaveLength(2);
    expect(statuses.filter((status) => status === "IP_TOO_MANY")).toHaveLength(4);
  });

  test("S1: the bucket of callers without a name has neither limit nor cooldown", async () => {
    const host = newHost({ slots: 3, slotsPerBucket: 1, cooldownMs: 400 });
    const slot = await host.take(host.waiter("n-1", { bucket: "" }));
    await host.release(slot.slotToken);
    const nameless = ["n-2", "n-3", "n-4"].map((name) => host.waiter(name, { bucket: "" }));
    expect(await host.statuses(nameless)).toEqual(["ACQUIRED", "ACQUIRED", "ACQUIRED"]);
  });

  test("S2: a second, a late and a foreign release free nothing", async () => {
    const host = newHost({ slots: 1 });
    const first = await host.take("a-1");
    expect(await host.release(first.slotToken)).toMatchObject({ isReleased: true, bucket: "a" });
    const second = await host.take("b-1");
    expect(await host.release(first.slotToken)).toEqual({ isReleased: false });
    expect(await host.release("no such token")).toEqual({ isReleased: false });
    expect(await host.statuses(["c-1"])).toEqual(["WAIT"]);
    expect(await host.release(second.slotToken)).toMatchObject({ isReleased: true });
  });

  test("S2: tokens are never given twice", async () => {
    const host = newHost({ slots: 1 });
    const tokens = new Set<string>();
    for (let round = 0; round < 20; round++) {
      const { slotToken } = await host.take(`a-${round}`);
      tokens.add(slotToken);
      await host.release(slotToken);
    }
    expect(tokens.size).toBe(20);
  });

  test("S3: fences grow with every grant", async () => {
    const host = newHost({ slots: 2 });
    let last = 0;
    for (let round = 0; round < 10; round++) {
      const { slotToken, fence } = await host.take(`a-${round}`);
      expect(fence).toBeGreaterThan(last);
      last = fence;
      await host.release(slotToken);
    }
  });

  test("S5: a lease that is not renewed ends by itself, and its token is nobody's", async () => {
    const host = newHost({ slots: 1, leaseMs: 200 });
    const slot = await host.take("a-1");
    expect(slot.leaseMs).toBeGreaterThan(0);
    expect(slot.leaseMs).toBeLessThanOrEqual(200);
    const { freeInMs } = await host.try(["b-1"]);
    expect(freeInMs).toBeGreaterThan(0);
    await host.pass(220);
    expect(await host.store.renew({ slotToken: slot.slotToken })).toBeUndefined();
    expect(await host.release(slot.slotToken)).toEqual({ isReleased: false });
    await host.take("b-1");
  });

  test("S5: a lease that ran out is not there to be released, though nobody has looked since", async () => {
    const host = newHost({ slots: 1, leaseMs: 100 });
    const slot = await host.take("a-1");
    await host.pass(120);
    expect(await host.release(slot.slotToken)).toEqual({ isReleased: false });
    await host.take("b-1");
  });

  test("S5: renewing keeps a lease, up to the longest hold", async () => {
    const host = newHost({ slots: 1, leaseMs: 300, maxHoldMs: 500 });
    const { slotToken } = await host.take("a-1");
    await host.pass(200);
    expect((await host.store.renew({ slotToken }))?.leaseMs).toBeLessThanOrEqual(300);
    await host.pass(200);
    expect((await host.store.renew({ slotToken }))?.leaseMs).toBeLessThanOrEqual(100);
    await host.pass(120);
    expect(await host.store.renew({ slotToken })).toBeUndefined();
    await host.take("b-1");
  });

  test("a released slot ends after the shortest hold from the hit, and nobody need be alive for it", async () => {
    const host = newHost({ slots: 1, minHoldMs: 300 });
    const { slotToken } = await host.take("a-1");
    const released = await host.release(slotToken, { hitAgoMs: 100 });
    expect(released).toMatchObject({ isReleased: true });
    expect(released.isReleased && released.endsInMs).toBeGreaterThan(100);
    expect(released.isReleased && released.endsInMs).toBeLessThanOrEqual(200);
    expect(await host.statuses(["b-1"])).toEqual(["WAIT"]);
    expect(await host.store.renew({ slotToken })).toBeUndefined();
    await host.pass(220);
    await host.take("b-1");
  });

  test("releases of a host are spaced, across batches, at most a lease ahead", async () => {
    const host = newHost({ slots: 6, leaseMs: 500, smoothMs: 200 });
    const reply = await host.try(["a-1", "b-1", "c-1", "d-1", "e-1"]);
    const ends: number[] = [];
    for (const verdict of reply.verdicts) {
      if (verdict.status !== "ACQUIRED") throw new Error(`Expected a slot, got ${verdict.status}`);
      const released = await host.release(verdict.slot.slotToken);
      ends.push(released.isReleased ? released.endsInMs : -1);
    }
    const expected = [0, 200, 400, 500, 500];
    ends.forEach((end, at) => {
      expect(end).toBeLessThanOrEqual(expected[at] as number);
      expect(end).toBeGreaterThan((expected[at] as number) - 150);
    });
  });

  test("after a release the bucket cools down, whatever its limit", async () => {
    const host = newHost({ slots: 3, slotsPerBucket: 1, cooldownMs: 250 });
    await host.release((await host.take("a-1")).slotToken);
    const { verdicts } = await host.try(["a-2", "b-1"]);
    expect(verdicts.map(({ status }) => status)).toEqual(["IP_TOO_MANY", "ACQUIRED"]);
    expect(verdicts[0]).toMatchObject({ blockedBy: "cooldown" });
    await host.pass(280);
    await host.take("a-2");
  });

  test("an operator's revocation ends the lease and tells nobody's token", async () => {
    const host = newHost({ slots: 1 });
    const { slotToken, fence } = await host.take("a-1");
    expect(JSON.stringify(await host.store.snapshot())).not.toContain(slotToken);
    expect(await host.store.operate({ kind: "revoke", slot: fence })).toBe(true);
    expect(await host.store.operate({ kind: "revoke", slot: fence })).toBe(false);
    expect(await host.store.renew({ slotToken })).toBeUndefined();
    await host.take("b-1");
  });

  test("an operator's limits win over those that travel, until they are lifted", async () => {
    const host = newHost({ slots: 1 });
    const { policy } = host;
    await host.store.operate({ kind: "limits", host: host.host, policy, limits: { slots: 2 } });
    expect(await host.statuses(["a-1", "b-1", "c-1"])).toEqual(["ACQUIRED", "ACQUIRED", "WAIT"]);
    await host.store.operate({ kind: "limits", host: host.host, policy, limits: undefined });
    expect((await host.try(["c-1"])).free).toBe(0);
  });
}
