/* oxlint-disable max-lines-per-function -- a list of tests */
import { expect, test } from "vitest";
import type { Bench } from "./describe-semaphore.ts";

/** Only the slot itself releases, once. Errors name the misuse. */
export function slotCases(bench: Bench): void {
  test("release is true the first time and false afterwards, and never frees the slot of another holder", async () => {
    const sem = bench.semaphore(1);
    const slot = await sem.acquire();
    expect([await slot.release(), await slot.release(), slot.released]).toEqual([true, false, true]);
    const next = await sem.acquire();
    expect([await slot.release(), next.released, await sem.tryAcquire()]).toEqual([false, false, undefined]);
    await next.release();
  });

  test("release by id is true only if that id held a slot of this semaphore", async () => {
    const [sem, other] = [bench.semaphore(1), bench.semaphore(1)];
    const slot = await sem.acquire();
    expect([await sem.release("no such id"), await sem.release(""), await other.release(slot.id)]).toEqual([
      false,
      false,
      false,
    ]);
    expect([await sem.release(slot.id), slot.released, await sem.release(slot.id), await slot.release()]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(await (await sem.tryAcquire())?.release()).toBe(true);
  });

  test("a slot is released at the end of its scope, also when the scope throws", async () => {
    const sem = bench.semaphore(1);
    const fail = async () => {
      using slot = await sem.acquire();
      expect(slot.released).toBe(false);
      throw new Error("inside");
    };
    await expect(fail()).rejects.toThrow("inside");
    await (await sem.acquire({ timeoutMs: 5_000 })).release();
  });

  test("an id is unique and long, and the same when read again", async () => {
    const sem = bench.semaphore(3);
    const slots = [await sem.acquire(), await sem.acquire(), await sem.acquire()];
    const ids = slots.map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    expect(Math.min(...ids.map((id) => id.length))).toBeGreaterThanOrEqual(20);
    expect(slots.map(({ id }) => id)).toEqual(ids);
    for (const slot of slots) await slot.release();
  });

  test("the signal is the same whenever it is read, and a release does not abort it", async () => {
    const sem = bench.semaphore(1);
    const slot = await sem.acquire();
    expect(slot.signal).toBe(slot.signal);
    await slot.release();
    expect(slot.signal.aborted).toBe(false);
  });

  test("an invalid number of slots is a RangeError that names it", () => {
    for (const slots of [0, -1, 1.5, Number.NaN]) expect(() => bench.semaphore(slots)).toThrow(RangeError);
    expect(() => bench.semaphore(-3)).toThrow(/-3/);
  });

  test("a negative timeout, and work that is not a function, are refused immediately", async () => {
    const sem = bench.semaphore(1);
    const asked = (options: object) => Promise.resolve().then(() => sem.acquire(options));
    await expect(asked({ timeoutMs: -1 })).rejects.toThrow(/timeoutMs/);
    const work = "no function" as unknown as () => void;
    await expect(Promise.resolve().then(() => sem.run(work))).rejects.toThrow(TypeError);
    expect(await (await sem.tryAcquire())?.release()).toBe(true);
  });
}
