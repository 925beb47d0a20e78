import { Random } from "@slotkeeper/testkit/random";
import { memoryHost } from "@slotkeeper/testkit/reference";
import { expect, test } from "vitest";
import { ClassHost } from "./class-host.ts";

interface ClassOf {
  readonly weight: number;
  readonly floor: number;
  readonly ceiling?: number;
  /** How long it holds a slot, on average. */
  readonly holdMs: number;
  readonly buckets: readonly string[];
}

interface Plan {
  readonly slots: number;
  readonly classes: { readonly [name: string]: ClassOf };
}

const HOSTS = 12;
/** How often each bucket holds a slot, at least: one hold more or less is a quarter of a percent. */
const HOLDS = 400;
const MOST_ERROR = 0.01;

function planOf(random: Random): Plan {
  const slots = random.int(3, 8);
  const names = ["batch", "chat", "default", "eval"].slice(0, random.int(2, 4));
  let rest = Math.floor(slots / 2);
  const classes = names.map((name) => {
    const floor = random.chance(0.4) ? random.int(0, rest) : 0;
    rest -= floor;
    const ceiling = random.chance(0.3) ? { ceiling: random.int(Math.max(1, floor), slots) } : {};
    const buckets = ["a", "b"].slice(0, random.int(1, 2));
    const own = {
      weight: random.pick([1, 2, 3, 5]),
      floor,
      ...ceiling,
      holdMs: random.pick([20, 40, 80]),
      buckets,
    };
    return [name, own] as const;
  });
  return { slots, classes: Object.fromEntries(classes) };
}

/** The slots of each class if they could be cut into pieces: max-min by weight, with floors and ceilings. Found by halving. */
function idealOf({ slots, classes }: Plan): { readonly [name: string]: number } {
  const at = (level: number) =>
    Object.entries(classes).map(([name, { weight, floor, ceiling = slots }]): [string, number] => {
      return [name, Math.min(ceiling, Math.max(floor, weight * level))];
    });
  let [low, high] = [0, 1e6];
  for (let step = 0; step < 100; step++) {
    const middle = (low + high) / 2;
    const sum = at(middle).reduce((total, [, share]) => total + share, 0);
    if (sum <= slots) low = middle;
    else high = middle;
  }
  return Object.fromEntries(at(low));
}

/** The slots of each class and bucket on average, while all of them always have waiters. */
async function measure({ slots, classes }: Plan, random: Random): Promise<Map<string, number>> {
  const limits = Object.entries(classes).map(([name, { weight, floor, ceiling }]) => {
    return [name, { weight, floor, ...(ceiling === undefined ? {} : { ceiling }) }];
  });
  const host = new ClassHost(memoryHost(), {
    maxSlotPerHost: slots,
    maxWaitersPerHost: 0,
    classes: Object.fromEntries(limits),
  });
  const used = new Map<string, number>();
  const held: { session: string; since: number; until: number }[] = [];
  const hold = () => {
    for (const session of host.granted.splice(0)) {
      const { holdMs } = classes[host.classOf(session)] as ClassOf;
      held.push({ session, since: host.now, until: host.now + holdMs * (0.5 + random.next()) });
    }
  };
  for (const [name, { buckets }] of Object.entries(classes))
    for (const bucket of buckets) await host.arrive({ class: name, bucket }, slots + 1);
  hold();
  const startedAt = host.now;
  const left = new Map<string, number>(
    Object.entries(classes).flatMap(([name, { buckets }]) =>
      buckets.map((bucket) => [`${name} ${bucket}`, HOLDS] as const),
    ),
  );
  while (left.size > 0) {
    held.sort((a, b) => b.until - a.until);
    const { session, since, until } = held.pop() as (typeof held)[number];
    host.now = until;
    const [name, bucket] = [host.classOf(session), host.bucketOf(session)];
    for (const one of [name, `${name} ${bucket}`]) used.set(one, (used.get(one) ?? 0) + host.now - since);
    const line = `${name} ${bucket}`;
    const holds = left.get(line);
    if (holds === 1) left.delete(line);
    else if (holds !== undefined) left.set(line, holds - 1);
    await host.arrive({ class: name, bucket });
    await host.release(session);
    hold();
  }
  return new Map([...used].map(([name, ms]) => [name, ms / (host.now - startedAt)]));
}

test.each(Array.from({ length: HOSTS }, (_, at) => ({ seed: at + 1 })))(
  "classes that always have waiters get slot time by weight within 1 %, and so do their buckets (seed $seed)",
  { timeout: 600_000 },
  async ({ seed }) => {
    const random = new Random(seed);
    const plan = planOf(random);
    const got = await measure(plan, random);
    for (const [name, share] of Object.entries(idealOf(plan))) {
      const { buckets } = plan.classes[name] as ClassOf;
      const shown = `${name}: ${got.get(name)} of ${share} in ${JSON.stringify(plan)}`;
      expect(Math.abs((got.get(name) ?? 0) / share - 1), shown).toBeLessThanOrEqual(MOST_ERROR);
      for (const bucket of buckets) {
        const own = (got.get(`${name} ${bucket}`) ?? 0) / (share / buckets.length);
        expect(Math.abs(own - 1), `${bucket} of ${shown}`).toBeLessThanOrEqual(MOST_ERROR);
      }
    }
  },
);
