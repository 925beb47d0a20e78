import type { RuleName } from "../history/rule.ts";
import type { Plant } from "../simulator/world.ts";
import { KEY_BUGS } from "./key-bugs.ts";
import {
  answeringInProgress,
  countOf,
  endingAtOnce,
  forEver,
  keptButRefused,
  losing,
  narrowed,
  patched,
  settlingWrong,
  tagOf,
  takingBack,
  wider,
  withKeys,
  withoutCeilings,
  withoutClasses,
  withoutKeys,
  withoutUseOfClasses,
} from "./plants.ts";

/** Whether a method finds a planted bug: by which rule and in the history of which seed, or why not. */
export type Finding =
  | { readonly isFound: true; readonly rule: string; readonly seed: number }
  | { readonly isFound: false; readonly why: string };

export interface PlantedBug {
  readonly name: string;
  /** The rule of the independent checker that it breaks, or why clients cannot see it. */
  readonly checker: RuleName | { readonly unseen: string };
  /** What the simulator must report, or why it cannot. */
  readonly rule: RegExp | { readonly unseen: string };
  readonly plant: Plant;
}

/** Planted bugs of the kind that such services have had. Each must be found, by the named rule. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: "an answer goes out before its commit",
    checker: "HIST1",
    rule: /^V[12]/,
    plant: {
      instanceStore: (store) =>
        patched(store, {
          commit: async (commit) => {
            void Promise.resolve(store.commit(commit)).catch(() => undefined);
            return { isOk: true, now: commit.now };
          },
        }),
    },
  },
  {
    name: "an answer from a decision in progress",
    checker: "HIST1",
    rule: /^V[12]/,
    plant: answeringInProgress(),
  },
  {
    name: "tags only count: after a failover an old base is accepted",
    checker: {
      unseen:
        "The failover itself excuses it: for clients, a slot that a wrong base lost or brought back looks like one that was lost with the last commits",
    },
    rule: /^V[1234]/,
    plant: {
      store: (store) =>
        patched(store, {
          commit: async (commit) => {
            const tag = await tagOf(store, commit.host);
            return store.commit(countOf(tag) === countOf(commit.base) ? { ...commit, base: tag } : commit);
          },
          read: async (host, since) => {
            const tag = await tagOf(store, host);
            const isSame = since !== undefined && countOf(tag) === countOf(since);
            const reply = await store.read(host, isSame ? tag : since);
            return isSame ? { ...reply, tag: since } : reply;
          },
        }),
    },
  },
  {
    name: "a stale commit is accepted: a lease is reclaimed after its renewal",
    checker: "HIST1",
    rule: /^V[12]/,
    plant: {
      store: (store) =>
        patched(store, {
          commit: async (commit) => {
            const reply = await store.commit(commit);
            if (reply.isOk || reply.reason !== "conflict" || reply.tag === undefined) return reply;
            const again = await store.commit({ ...commit, base: reply.tag });
            return again.isOk ? again : reply;
          },
        }),
    },
  },
  {
    name: "an offer to a dead instance is kept",
    checker: {
      unseen:
        "The slot is missing until the dead instance is forgotten, at most 5 s. For clients it looks like a slot whose grant was lost with that instance, which may be missing for a whole lease",
    },
    rule: /^V5/,
    plant: {
      store: (store) =>
        patched(store, {
          commit: (commit) => {
            const { changes } = commit;
            return store.commit({ ...commit, changes: { ...changes, puts: changes.puts.map(forEver) } });
          },
          read: async (host) => store.read(host, undefined),
        }),
    },
  },
  {
    name: "two instances answer one grant, and one of them takes it back",
    checker: "HIST5",
    rule: /^V[126]/,
    plant: { store: takingBack },
  },
  {
    name: "instances run with one slot too many",
    checker: "HIST1",
    rule: /^V1/,
    plant: { config: (config) => ({ ...config, maxSlotPerHost: (config.maxSlotPerHost ?? 0) + 1 }) },
  },
  {
    name: "slot tokens are reusable row numbers",
    checker: "HIST2",
    rule: /^V2/,
    plant: {
      newSecret: () => {
        let row = 0;
        return () => `row-${row++ % 5}`;
      },
    },
  },
  {
    name: "the store forgets how sessions ended: one is granted twice",
    checker: "HIST2",
    rule: /^V2/,
    plant: losing((kind, what) => kind === "ending" && what === "put"),
  },
  {
    name: "the store forgets how sessions ended: one is counted twice",
    checker: "HIST2",
    rule: /^V6 .*counted wrongly/,
    plant: losing((kind, what) => kind === "ending" && what === "put"),
  },
  {
    name: "the store forgets that it has forgotten ends of sessions: one is granted twice",
    checker: "HIST2",
    rule: /^V2/,
    plant: {
      store: (store) =>
        patched(store, {
          commit: (commit) => {
            const { head } = commit.changes;
            if (head === undefined) return store.commit(commit);
            return store.commit({
              ...commit,
              changes: { ...commit.changes, head: { ...head, forgottenAt: undefined } },
            });
          },
          read: async (host) => store.read(host, undefined),
        }),
    },
  },
  {
    name: "a commit is kept and reported as refused: what it ended is not counted",
    checker: { unseen: "Only the counts are wrong, which are metrics: the sessions of the clients end as they should" },
    rule: /^V6 .*counted wrongly/,
    plant: { instanceStore: (store) => patched(store, { commit: (commit) => keptButRefused(store, commit) }) },
  },
  {
    name: "a read finds no changes: a slot that ended elsewhere is returned again",
    checker: "HIST5",
    rule: /^V9/,
    plant: {
      store: (store) =>
        patched(store, {
          read: async (host, since) => {
            const reply = await store.read(host, since);
            const head = reply.tail.kind === "book" ? reply.tail.book?.head : reply.tail.changes.head;
            if (since === undefined || head === undefined) return reply;
            return { ...reply, tag: since, tail: { kind: "changes", changes: { head, puts: [], dels: [] } } };
          },
        }),
    },
  },
  {
    name: "the store forgets cooldowns",
    checker: "HIST10",
    rule: /^V10 .*no cooldown/,
    plant: losing((kind, what) => kind === "cooldown" && what === "put"),
  },
  {
    name: "a slot that is given back by cancel is free at once",
    checker: "HIST11",
    rule: /^V10 .*minimum hold/,
    plant: { store: (store) => patched(store, { commit: (commit) => store.commit(endingAtOnce(commit)) }) },
  },
  {
    name: "instances close the breaker early",
    checker: "HIST12",
    rule: /^V10 .*after the breaker opened/,
    plant: { config: (config) => ({ ...config, breaker: { ...config.breaker, openSeconds: 0.1 } }) },
  },
  {
    name: "a half-open breaker lets two probes through",
    checker: "HIST13",
    rule: /^V10 .*probes/,
    plant: { config: (config) => ({ ...config, breaker: { ...config.breaker, halfOpenProbes: 2 } }) },
  },
  {
    name: "the store counts a wide lease as one slot",
    checker: "HIST1",
    rule: /^V1/,
    plant: narrowed("lease"),
  },
  {
    name: "a request for several slots is granted one",
    checker: "HIST1",
    rule: /^V11/,
    plant: narrowed("waiter"),
  },
  {
    name: "instances run with one slot too many for each value of a key",
    checker: "HIST1",
    rule: /^V1 .* of (?:user|tenant) /,
    plant: { config: (config) => withKeys(config, wider) },
  },
  {
    name: "the store forgets the keys of a slot",
    checker: "HIST1",
    rule: /^V[14]/,
    plant: withoutKeys(),
  },
  ...KEY_BUGS,
  {
    name: "instances ignore the ceilings of classes",
    checker: "HIST1",
    rule: /^V1 .* of class /,
    plant: { config: withoutCeilings },
  },
  {
    name: "the store forgets the class of a slot",
    checker: "HIST1",
    rule: /^V11 .* class /,
    plant: withoutClasses(),
  },
  {
    name: "the store forgets what classes used",
    checker: {
      unseen:
        "Only the fairness bound could show it, and that is judged for classes and buckets that always have waiters. Simulated clients pause too often: 2 pairs could be judged in 300 seeds",
    },
    rule: /^V4/,
    plant: withoutUseOfClasses(),
  },
  {
    name: "waiters that ended stay",
    checker: "HIST2",
    rule: /^V[1-7]/,
    plant: losing((kind, what) => kind === "waiter" && what === "del"),
  },
  {
    name: "a budget refills twice as fast",
    checker: "HIST14",
    rule: /^V12/,
    plant: {
      config: ({ budgets, ...config }) => {
        if (budgets?.["tokens"] === undefined) return config;
        const { limit, burst = limit } = budgets["tokens"];
        return { ...config, budgets: { ...budgets, tokens: { ...budgets["tokens"], limit: 2 * limit, burst } } };
      },
    },
  },
  {
    name: "what was not used of a budget is given back twice",
    checker: "HIST14",
    rule: /^V12/,
    plant: settlingWrong((used, charged) => (used < charged ? Math.max(0, 2 * used - charged) : used)),
  },
  {
    name: "a use above the estimate makes no debt",
    checker: "HIST14",
    rule: /^V12/,
    plant: settlingWrong((used, charged) => Math.min(used, charged)),
  },
];
