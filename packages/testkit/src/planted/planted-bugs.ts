import type { BookRecord, Commit, CommitReply, FairQueue, HostStore, LeaseRecord, RecordKind } from "@slotkeeper/queue";
import type { RuleName } from "../history/rule.ts";
import type { Plant } from "../simulator/world.ts";

/** The object with some of its methods replaced. */
function patched<T extends object>(original: T, overrides: Partial<T>): T {
  return new Proxy(original, {
    get(target, key) {
      if (key in overrides) return Reflect.get(overrides, key);
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Removes some changes from a commit. */
function without(commit: Commit, isLost: (kind: RecordKind, what: "put" | "del") => boolean): Commit {
  const { changes } = commit;
  const puts = changes.puts.filter(({ kind }) => !isLost(kind, "put"));
  const dels = changes.dels.filter(([kind]) => !isLost(kind, "del"));
  return { ...commit, changes: { ...changes, puts, dels } };
}

function losing(isLost: (kind: RecordKind, what: "put" | "del") => boolean): Plant {
  return { store: (store) => patched(store, { commit: (commit) => store.commit(without(commit, isLost)) }) };
}

const countOf = (tag: string | undefined) => (tag === undefined ? 0 : Number.parseInt(tag, 10));

/** The current tag of the store. */
async function tagOf(store: HostStore, host: string): Promise<string | undefined> {
  return (await store.read(host, undefined)).tag;
}

/** An instance takes back a lease that it made, although another instance has delivered it. */
function takingBack(store: HostStore): HostStore {
  const makers = new Map<string, string>();
  const delivered = new Map<string, string>();
  const commit = (decided: Commit) => {
    const { changes, instance } = decided;
    const taken = [...delivered].filter(([, maker]) => maker === instance).map(([key]) => ["lease", key] as const);
    for (const record of changes.puts) {
      if (record.kind !== "lease") continue;
      const maker = makers.get(record.key) ?? instance;
      makers.set(record.key, maker);
      if (maker !== instance && record.instance === instance) delivered.set(record.key, maker);
    }
    for (const [, key] of taken) delivered.delete(key);
    return store.commit({ ...decided, changes: { ...changes, dels: [...changes.dels, ...taken] } });
  };
  return patched(store, { commit });
}

function forEver(record: BookRecord): BookRecord {
  return record.kind === "offer" ? { ...record, lapsesAt: record.lapsesAt + 1e9 } : record;
}

/** Applies every commit that ends a session, but answers that it was refused. */
async function keptButRefused(store: HostStore, commit: Commit): Promise<CommitReply> {
  const reply = await store.commit(commit);
  const isEnd = commit.changes.puts.some((record) => record.kind === "session" && record.instance !== undefined);
  if (!reply.isOk || !isEnd) return reply;
  return { isOk: false, reason: "conflict", ...(await store.read(commit.host, commit.base)) };
}

/** A poll is answered with the slot of a commit that is still on its way to the store. */
function answeringInProgress(): Plant {
  let sent = new Map<string, LeaseRecord>();
  const instanceStore = (store: HostStore, instance: string) => {
    const leases = new Map<string, LeaseRecord>();
    sent = leases;
    const commit = async (decided: Commit) => {
      for (const record of decided.changes.puts)
        if (record.kind === "lease" && record.instance === instance) leases.set(record.session, record);
      try {
        return await store.commit(decided);
      } finally {
        leases.clear();
      }
    };
    return patched(store, { commit });
  };
  const queue = (original: FairQueue) => {
    const leases = sent;
    const poll: FairQueue["poll"] = async (session, call) => {
      const lease = leases.get(session.id);
      if (lease === undefined) return original.poll(session, call);
      const { key: slotToken, fence, endsAt } = lease;
      return { result: "granted", session, slotToken, limit: 1, fence, leaseMs: endsAt - original.now() };
    };
    return patched(original, { poll });
  };
  return { instanceStore, queue };
}

/** Frees the slots that a cancellation ends with a minimum hold. */
function endingAtOnce(commit: Commit): Commit {
  const { changes } = commit;
  const canceled = new Set(
    changes.puts.flatMap((record) => (record.kind === "session" && record.end === "canceled" ? [record.key] : [])),
  );
  const isHeld = (record: BookRecord) => record.kind === "lease" && record.isReleased && canceled.has(record.session);
  const dels = changes.puts.filter(isHeld).map(({ kind, key }) => [kind, key] as const);
  const puts = changes.puts.filter((record) => !isHeld(record));
  return { ...commit, changes: { ...changes, puts, dels: [...changes.dels, ...dels] } };
}

/** Whether a method finds a planted bug: by which rule, or why not. */
export type Finding =
  | { readonly isFound: true; readonly rule: string }
  | { readonly isFound: false; readonly why: string };

export interface PlantedBug {
  readonly name: string;
  /** The rule of the independent checker that it breaks, or why clients cannot see it. */
  readonly checker: RuleName | { readonly unseen: string };
  /** What the simulator must report. */
  readonly rule: RegExp;
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
    plant: losing((kind, what) => kind === "session" && what === "put"),
  },
  {
    name: "the store forgets how sessions ended: one is counted twice",
    checker: "HIST2",
    rule: /^V6 .*counted wrongly/,
    plant: losing((kind, what) => kind === "session" && what === "put"),
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
    name: "waiters that ended stay",
    checker: "HIST2",
    rule: /^V[1-7]/,
    plant: losing((kind, what) => kind === "waiter" && what === "del"),
  },
];
