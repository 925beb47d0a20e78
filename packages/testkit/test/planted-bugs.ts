import type { SlotStore } from "@slotkeeper/queue";
import type { Plant } from "@slotkeeper/testkit/simulator";

/** The store with some of its methods replaced. */
function patched(store: SlotStore, patch: () => Partial<SlotStore>): SlotStore {
  const overrides = patch();
  return new Proxy(store, {
    get(target, key) {
      const value: unknown = Reflect.get(key in overrides ? overrides : target, key);
      return typeof value === "function" && !(key in overrides) ? value.bind(target) : value;
    },
  });
}

/** Faults of the kind such services have had, put in on purpose. Each must be caught, and by the rule named. */
export const PLANTED_BUGS: readonly { readonly name: string; readonly rule: string; readonly plant: Plant }[] = [
  {
    name: "the limit is read before the lock: one slot too many, now and then",
    rule: "V1",
    plant: {
      store: (store) =>
        patched(store, () => ({
          tryAcquire: (batch) =>
            store.tryAcquire({ ...batch, policy: { ...batch.policy, slots: batch.policy.slots + 1 } }),
        })),
    },
  },
  {
    name: "slot tokens are reusable row numbers",
    rule: "V2",
    plant: {
      newToken: () => {
        let row = 0;
        return () => `row-${row++ % 5}`;
      },
    },
  },
  {
    name: "the store forgets whom it granted: a lost answer makes a second lease",
    rule: "V2",
    plant: {
      store: (store) => {
        let tries = 0;
        return patched(store, () => ({
          tryAcquire: (batch) =>
            store
              .tryAcquire({
                ...batch,
                waiters: batch.waiters.map((waiter) => ({ ...waiter, session: `${waiter.session}#${tries++}` })),
              })
              .then((reply) => ({ ...reply, displaced: reply.displaced.map((session) => session.replace(/#.*/, "")) })),
          snapshot: async () => {
            const { hosts, sessions } = await store.snapshot();
            const plain = hosts.map((host) => ({
              ...host,
              leases: host.leases.map((lease) => ({ ...lease, session: lease.session.replace(/#.*/, "") })),
            }));
            return { hosts: plain, sessions };
          },
        }));
      },
    },
  },
  {
    name: "fences start again after a failover",
    rule: "V3",
    plant: {
      store: (store) => {
        let grants = 0;
        return patched(store, () => ({
          tryAcquire: async (batch) => {
            const reply = await store.tryAcquire(batch);
            const verdicts = reply.verdicts.map((verdict) => {
              if (verdict.status !== "ACQUIRED" || ++grants % 10 !== 0) return verdict;
              return { ...verdict, slot: { ...verdict.slot, fence: verdict.slot.fence - 5_000 } };
            });
            return { ...reply, verdicts };
          },
        }));
      },
    },
  },
  {
    name: "nobody is told that a slot was freed: it idles until the next poll",
    rule: "V5",
    plant: {
      store: (store) =>
        patched(store, () => ({
          onFreed: () => () => {},
          tryAcquire: async (batch) => ({ ...(await store.tryAcquire(batch)), freeInMs: undefined }),
          release: async (request) => {
            await store.release(request);
            return { isReleased: false };
          },
        })),
    },
  },
  {
    name: "waiters that ended stay in the pool",
    rule: "V7",
    plant: {
      store: (store) =>
        patched(store, () => ({
          withdraw: async () => {},
          heartbeatMs: undefined,
          cleanup: async () => ({ slots: 0, cooldowns: 0, waiters: 0, sessions: 0, failures: [] }),
        })),
    },
  },
  {
    name: "an uncollected slot is taken back though another instance delivered it",
    rule: "V1",
    plant: {
      store: (store) =>
        patched(store, () => ({
          release: (request) =>
            store.release({ ...request, hitAgoMs: undefined, policy: undefined, uncollectedBy: undefined }),
        })),
    },
  },
];
