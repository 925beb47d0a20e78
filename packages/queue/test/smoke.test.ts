import { expect, test } from "vitest";
import { Bench, tokenOf } from "./bench-of-one.ts";

test("smoke", async () => {
  const bench = new Bench({ maxSlotPerHost: 1 });
  const one = await bench.take("a");
  const b = await bench.want("b");
  const c = await bench.want("c");
  console.log(JSON.stringify(bench.queue.dump(), null, 1).slice(0, 1500));
  await bench.release(one.slotToken);
  const t = tokenOf(b.followed);
  expect(c.followed.last).toBeUndefined();
  await bench.clock.run(3000);
  await bench.release(t);
  tokenOf(c.followed);
  await bench.release(tokenOf(c.followed));
  await bench.clock.run(300_000);
  console.log(JSON.stringify(bench.queue.dump()), bench.clock.pending, JSON.stringify(await bench.store.snapshot()));
});
