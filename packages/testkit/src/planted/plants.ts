import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { BookRecord, Commit, CommitReply, FairQueue, HostStore, LeaseRecord, RecordKind } from "@slotkeeper/queue";
import type { Plant } from "../simulator/world.ts";

/** Parts of planted bugs: stores and queues that do something wrong. */

/** The object with some of its methods replaced. */
export function patched<T extends object>(original: T, overrides: Partial<T>): T {
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

export function losing(isLost: (kind: RecordKind, what: "put" | "del") => boolean): Plant {
  return { store: (store) => patched(store, { commit: (commit) => store.commit(without(commit, isLost)) }) };
}

export const countOf = (tag: string | undefined) => (tag === undefined ? 0 : Number.parseInt(tag, 10));

/** The current tag of the store. */
export async function tagOf(store: HostStore, host: string): Promise<string | undefined> {
  return (await store.read(host, undefined)).tag;
}

/** An instance takes back a lease that it made, although another instance has delivered it. */
export function takingBack(store: HostStore): HostStore {
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

export function forEver(record: BookRecord): BookRecord {
  return record.kind === "offer" ? { ...record, lapsesAt: record.lapsesAt + 1e9 } : record;
}

/** Applies every commit that ends a session, but answers that it was refused. */
export async function keptButRefused(store: HostStore, commit: Commit): Promise<CommitReply> {
  const reply = await store.commit(commit);
  const isEnd = commit.changes.puts.some((record) => record.kind === "ending" && record.instance !== undefined);
  if (!reply.isOk || !isEnd) return reply;
  return { isOk: false, reason: "conflict", ...(await store.read(commit.host, commit.base)) };
}

/** A poll is answered with the slot of a commit that is still on its way to the store. */
export function answeringInProgress(): Plant {
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
      const { key: slotToken, fence, endsAt, width } = lease;
      return { result: "granted", session, slotToken, limit: 1, fence, leaseMs: endsAt - original.now(), width };
    };
    return patched(original, { poll });
  };
  return { instanceStore, queue };
}

/** The store forgets how many slots these records need or have. */
export function narrowed(kind: "lease" | "waiter"): Plant {
  const narrow = (record: BookRecord): BookRecord => {
    if (record.kind !== kind) return record;
    return record.kind === "lease" ? { ...record, width: 1 } : { ...record, demand: undefined };
  };
  return {
    store: (store) =>
      patched(store, {
        commit: (commit) => {
          const { changes } = commit;
          return store.commit({ ...commit, changes: { ...changes, puts: changes.puts.map(narrow) } });
        },
        read: async (host) => store.read(host, undefined),
      }),
  };
}

/** Frees the slots that a cancellation ends with a minimum hold. */
export function endingAtOnce(commit: Commit): Commit {
  const { changes } = commit;
  const canceled = new Set(
    changes.puts.flatMap((record) => (record.kind === "ending" && record.end === "canceled" ? [record.key] : [])),
  );
  const isHeld = (record: BookRecord) => record.kind === "lease" && record.isReleased && canceled.has(record.session);
  const dels = changes.puts.filter(isHeld).map(({ kind, key }) => [kind, key] as const);
  const puts = changes.puts.filter((record) => !isHeld(record));
  return { ...commit, changes: { ...changes, puts, dels: [...changes.dels, ...dels] } };
}

/** A release says another amount than was used, which depends on what the slot was charged. */
export function settlingWrong(changed: (used: number, charged: number) => number | undefined): Plant {
  return {
    queue: (original) => {
      const charged = new Map<string, number>();
      const poll: FairQueue["poll"] = async (session, call) => {
        const answer = await original.poll(session, call);
        if (answer.result === "granted") charged.set(answer.slotToken, answer.charged?.["tokens"] ?? 0);
        return answer;
      };
      const release: FairQueue["release"] = ({ used, ...input }, onAccepted) => {
        const estimate = charged.get(input.slotToken);
        const isKnown = used?.["tokens"] !== undefined && estimate !== undefined;
        const tokens = isKnown ? changed(used["tokens"] as number, estimate) : used?.["tokens"];
        original.release({ ...input, used: tokens === undefined ? undefined : { tokens } }, onAccepted);
      };
      return patched(original, { poll, release });
    },
  };
}

/** The store keeps other records than it was given, and instances read them again for every decision. */
function keeping(changed: (changes: Commit["changes"]) => Commit["changes"]): Plant {
  return {
    store: (store) =>
      patched(store, {
        commit: (commit) => store.commit({ ...commit, changes: changed(commit.changes) }),
        read: async (host) => store.read(host, undefined),
      }),
  };
}

function uncharged(record: BookRecord): BookRecord {
  return record.kind === "lease" || record.kind === "offer" ? { ...record, charge: undefined } : record;
}

/** The store forgets whose limits a slot counts against. */
export function withoutKeys(): Plant {
  return keeping((changes) => ({ ...changes, puts: changes.puts.map(uncharged) }));
}

function unnamed(record: BookRecord): BookRecord {
  if ((record.kind !== "lease" && record.kind !== "offer") || record.charge?.asked === undefined) return record;
  const { width, cost, keys } = record.charge.asked;
  return { ...record, charge: { ...record.charge, asked: { width, cost, keys } } };
}

/** The store forgets of which class a slot is. */
export function withoutClasses(): Plant {
  return keeping((changes) => ({ ...changes, puts: changes.puts.map(unnamed) }));
}

/** The store forgets what classes used: a class that used little is not before one that used much. */
export function withoutUseOfClasses(): Plant {
  return keeping(({ head, ...changes }) => {
    if (head?.classes === undefined) return { ...changes, head };
    const uses = Object.entries(head.classes).map(([name, use]) => [name, { ...use, usedMs: 0 }]);
    return { ...changes, head: { ...head, classes: Object.fromEntries(uses) } };
  });
}

type HasClasses = Pick<FairQueueConfig, "classes">;

function open<T extends HasClasses>(limits: T): T {
  if (limits.classes === undefined) return limits;
  const all = Object.entries(limits.classes).map(([name, one]) => [name, { ...one, ceiling: undefined }]);
  return { ...limits, classes: Object.fromEntries(all) };
}

/** Of the default of all hosts, and of a host. */
export function withoutCeilings(config: FairQueueConfig): FairQueueConfig {
  const hosts = Object.entries(config.hosts ?? {}).map(([name, host]) => [name, open(host)]);
  return { ...open(config), hosts: Object.fromEntries(hosts) };
}

export type Keys = NonNullable<FairQueueConfig["keys"]>;

export function withKeys(config: FairQueueConfig, changed: (key: Keys[string]) => Keys[string]): FairQueueConfig {
  if (config.keys === undefined) return config;
  const entries = Object.entries(config.keys).map(([name, key]) => [name, changed(key)]);
  return { ...config, keys: Object.fromEntries(entries) };
}

export function wider(key: Keys[string]): Keys[string] {
  return key.slots === undefined ? key : { ...key, slots: key.slots + 1 };
}
