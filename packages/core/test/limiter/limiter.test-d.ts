/** Compiled, never run: what the types promise. */
import { Semaphore, type Slot } from "slotkeeper";
import { Limiter, type LimiterSlot, stream } from "slotkeeper/limiter";
import { LeakGuard } from "slotkeeper/testing";
import { expectTypeOf, test } from "vitest";

const limiter = new Limiter({
  slots: 5,
  budgets: { requests: { limit: 1, perMs: 1 }, tokens: { limit: 1, perMs: 1 } },
  perKey: { budgets: { tokens: { limit: 1, perMs: 1 } } },
});

test("the names of budgets are known from the options", () => {
  expectTypeOf(limiter).toEqualTypeOf<Limiter<"requests" | "tokens">>();
  void limiter.acquire({ cost: { tokens: 5 }, key: Symbol("any"), level: 0 });
  // @ts-expect-error There is no such budget.
  void limiter.acquire({ cost: { token: 5 } });
  // @ts-expect-error There is no such budget.
  limiter.learn("token", { remaining: 1 });
  limiter.update({ budgets: { tokens: { limit: 5 } } });
  void new Limiter({ slots: 5 }).acquire({ key: "a" });
});

test("run gives Awaited<T>, and isOverload sees the same", () => {
  const isOverload = ({ value }: { value?: { status: number } }) => value?.status === 429;
  expectTypeOf(limiter.run(async () => ({ status: 200 }), { isOverload })).toEqualTypeOf<Promise<{ status: number }>>();
  expectTypeOf(limiter.run((slot) => slot.settle({ tokens: 1 }))).toEqualTypeOf<Promise<boolean>>();
  expectTypeOf(limiter.map([1], (item) => String(item))).toEqualTypeOf<Promise<string[]>>();
});

test("the slot is a Slot, and a limiter can be tracked by a leak guard", () => {
  expectTypeOf<LimiterSlot>().toExtend<Slot>();
  new LeakGuard().track(limiter);
});

test("streams take semaphores and limiters, and infer the items", () => {
  const fetched = stream(new Semaphore(1), ["a"], async (item) => item.length);
  expectTypeOf(fetched).toEqualTypeOf<AsyncIterableIterator<number>>();
  void stream(limiter, ["a"], (item, _, { slot }) => slot.settle({ tokens: item.length }), {
    acquire: (item) => ({ cost: { tokens: item.length } }),
  });
});
