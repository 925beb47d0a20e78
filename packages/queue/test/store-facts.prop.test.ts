import {
  type HostPolicy,
  MemoryStore,
  resolveHost,
  resolveOptions,
  type StoreFact,
  StoreImage,
} from "@slotkeeper/queue";
import * as fc from "fast-check";
import { FakeClock } from "slotkeeper/testing";
import { expect, test } from "vitest";

const LIMITS = { maxSlotPerHost: 3, maxSlotPerIp: 2, maxWaitersPerHost: 0 };
const SPACED = { minSlotHoldMs: 300, ipCooldownSeconds: 2, zombieTimeoutSeconds: 5 };
const POLICIES = [LIMITS, { ...LIMITS, ...SPACED }].map(
  (config) => resolveHost(resolveOptions(config), "h").policy,
) as readonly HostPolicy[];
const STEPS = [
  "try",
  "release",
  "renew",
  "withdraw",
  "undo",
  "report",
  "limits",
  "breaker",
  "revoke",
  "clean",
  "time",
] as const;
const steps = fc.array(
  fc.record({ step: fc.constantFrom(...STEPS, "try", "try", "time"), pick: fc.nat({ max: 30 }) }),
  {
    maxLength: 60,
  },
);

/** Any history of calls, at two hosts with a policy each. */
async function live(store: MemoryStore, clock: FakeClock, plan: readonly { step: string; pick: number }[]) {
  const tokens: { slotToken: string; fence: number; session: string; at: string }[] = [];
  for (const [at, { step, pick }] of plan.entries()) {
    const [host, policy] = [`h${pick % 2}`, POLICIES[pick % 2] as HostPolicy];
    const held = tokens[pick % Math.max(1, tokens.length)] ?? {
      slotToken: "none",
      fence: 0,
      session: "none",
      at: host,
    };
    const its = { host: held.at, policy: POLICIES[Number(held.at[1])] as HostPolicy };
    const release = { slotToken: held.slotToken, ...its, hitAgoMs: 100, status: [200, 503, undefined][pick % 3] };
    if (step === "try") {
      const waiter = {
        session: `s${at}`,
        bucket: `b${pick % 3}`,
        weight: 1,
        arrivedAt: at,
        ttlMs: 3000,
        openMs: 60_000,
      };
      const waiters = [{ ...waiter, isGrantable: true }];
      const { verdicts } = await store.tryAcquire({ host, instance: "i", policy, isSemaphore: false, waiters });
      if (verdicts[0]?.status === "ACQUIRED") tokens.push({ ...verdicts[0].slot, session: `s${at}`, at: host });
    } else if (step === "release") await store.release({ ...release, uncollectedBy: undefined });
    else if (step === "undo") await store.release({ ...release, status: undefined, uncollectedBy: "i" });
    else if (step === "renew") await store.renew(held);
    else if (step === "withdraw") {
      const sessions = [{ session: held.session, end: "canceled" as const, ttlMs: 3000 }];
      await store.withdraw({ ...its, instance: "i", sessions });
    } else if (step === "report") await store.report({ host, policy, status: pick % 2 === 0 ? 200 : 503 });
    else if (step === "limits") {
      const limits = pick % 3 === 0 ? undefined : { slots: 1 + (pick % 5) };
      await store.operate({ kind: "limits", host, policy, limits });
    } else if (step === "breaker") await store.operate({ kind: "breaker", host, policy, isOpen: pick % 4 === 0 });
    else if (step === "revoke") await store.operate({ kind: "revoke", slot: held.fence });
    else if (step === "clean") await store.cleanup({ waiterTtlMs: 1000, resetSmoothing: pick % 2 === 0 });
    else clock.advance(pick * 60);
  }
}

const imageOf = (facts: readonly StoreFact[]): StoreImage => {
  const image = new StoreImage();
  for (const fact of facts) image.apply(fact);
  return image;
};

/** What a store born of an image knows that may be asked for: everything but use, which starts anew. */
async function known(image: StoreImage, now: number) {
  const store = new MemoryStore({ clock: new FakeClock(now), newToken: () => "t", image });
  await store.cleanup({ waiterTtlMs: 1000 });
  const facts = store.facts().filter(({ kind }) => kind !== "host");
  return facts.map((fact) => JSON.stringify(fact)).sort();
}

test("what a store told, fact by fact, is what it says of itself as a whole, and twice is as once", async () => {
  await fc.assert(
    fc.asyncProperty(steps, async (plan) => {
      const clock = new FakeClock(1e12);
      const told: StoreFact[] = [];
      let made = 0;
      const store = new MemoryStore({ clock, newToken: () => `t${made++}`, onFact: (fact) => told.push(fact) });
      await live(store, clock, plan);
      await store.cleanup({ waiterTtlMs: 1000 });
      const asOne = store.facts();
      const now = clock.now();
      const whole = await known(imageOf(asOne), now);
      expect(await known(imageOf(told), now)).toEqual(whole);
      expect(await known(imageOf([...asOne, ...asOne]), now)).toEqual(whole);
    }),
    { numRuns: 300 },
  );
});
