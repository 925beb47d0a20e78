import * as fc from "fast-check";
import { FakeClock, settled } from "slotkeeper/testing";
import { TransferSlots } from "slotkeeper/transfers";
import { describe, expect, test } from "vitest";
import { patience, runs } from "../long-mode.ts";
import { NaiveUploads, steps, UploadLife } from "./upload-world.ts";

describe("TRANSFER1, TRANSFER2, TRANSFER3: acquires, aborts, releases and sweeps, in any order and between any turns", () => {
  test("one user never has two uploads, and there are never more than the maximum", patience, async () => {
    const life = fc.asyncProperty(steps, fc.integer({ min: 1, max: 3 }), async (steps, maxUploads) => {
      const clock = new FakeClock();
      const slots = new TransferSlots({ maxUploads, clock, idleMs: 10, sweepEveryMs: 7 });
      await new UploadLife(slots, clock, { max: maxUploads, perUser: 1 }).live(steps);
      expect(slots.stats().uploadsActive).toBe(0);
      slots.sweep(0);
      expect([slots.stats().userSlots, clock.pending]).toEqual([0, 0]);
    });
    await fc.assert(life, runs(500));
  });

  test("nor do several uploads per user become more, nor is there a limit where there is none", patience, async () => {
    const life = fc.asyncProperty(steps, fc.integer({ min: 2, max: 3 }), async (steps, uploadsPerUser) => {
      const clock = new FakeClock();
      const slots = new TransferSlots({ maxUploads: 0, uploadsPerUser, clock });
      await new UploadLife(slots, clock, { max: Infinity, perUser: uploadsPerUser }).live(steps);
      expect(slots.stats().uploadsActive).toBe(0);
      slots.close();
      expect(clock.pending).toBe(0);
    });
    await fc.assert(life, runs(200));
  });

  test("control: slots that are swept by the time of last use are caught giving one user two uploads", async () => {
    const life = fc.asyncProperty(steps, async (steps) => {
      const clock = new FakeClock();
      await new UploadLife(new NaiveUploads(3, clock), clock, { max: 3, perUser: 1 }).live(steps);
    });
    const { failed, errorInstance } = await fc.check(life, { numRuns: 500 });
    expect(failed).toBe(true);
    expect(String(errorInstance)).toContain('2 uploads of "');
  });
});

/** Four uploads, three of them of one user, with a sweep in that turn. Says how many turns it took in all. */
async function uploadsWithSweepAt(sweepAt: number): Promise<number> {
  const slots = new TransferSlots({ maxUploads: 1, clock: new FakeClock() });
  let [active, most] = [0, 0];
  const state = { isOver: false, turns: 0 };
  const upload = () =>
    slots.runUpload("ann", async () => {
      most = Math.max(most, ++active);
      await settled(2);
      active--;
    });
  const all = Promise.all([upload(), slots.runUpload("bob", () => settled(3)), upload(), upload()]);
  const over = all.then(() => (state.isOver = true));
  for (; !state.isOver; state.turns++) {
    if (state.turns === sweepAt) slots.sweep(0);
    await settled(1);
  }
  await over;
  slots.close();
  expect([most, slots.stats().uploadsActive]).toEqual([1, 0]);
  return state.turns;
}

test("a sweep in any single turn between look-up and release never gives a user a second upload", async () => {
  const turns = await uploadsWithSweepAt(-1);
  expect(turns).toBeGreaterThan(5);
  for (let sweepAt = 0; sweepAt <= turns; sweepAt++) await uploadsWithSweepAt(sweepAt);
});

test(
  "under stress there are never more than the maximum, the maximum is reached, and every caller is served",
  patience,
  async () => {
    const task = fc.record({ user: fc.nat({ max: 30 }), turns: fc.nat({ max: 4 }), isUpload: fc.boolean() });
    const stress = fc.asyncProperty(fc.array(task, { minLength: 400, maxLength: 800 }), async (tasks) => {
      const limits = { uploads: 7, downloads: 5 };
      const slots = new TransferSlots({ maxUploads: 7, maxDownloads: 5, clock: new FakeClock() });
      const active = { uploads: 0, downloads: 0 };
      const most = { uploads: 0, downloads: 0 };
      const users = new Set<string>();
      const work = async (kind: keyof typeof limits, turns: number) => {
        most[kind] = Math.max(most[kind], ++active[kind]);
        await settled(turns);
        active[kind]--;
        if (turns === 0) slots.sweep(0);
      };
      const upload = (user: string, turns: number) =>
        slots.runUpload(user, async () => {
          if (users.has(user)) throw new Error(`Two uploads of ${user}`);
          users.add(user);
          await work("uploads", turns);
          users.delete(user);
        });
      await Promise.all(
        tasks.map(({ user, turns, isUpload }) =>
          isUpload ? upload(`user ${user}`, turns) : slots.runDownload(() => work("downloads", turns)),
        ),
      );
      expect(most).toEqual(limits);
      expect(slots.stats()).toMatchObject({ downloadsActive: 0, uploadsActive: 0 });
      slots.close();
    });
    await fc.assert(stress, runs(30));
  },
);
