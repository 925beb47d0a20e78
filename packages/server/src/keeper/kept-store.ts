import {
  type Changes,
  type Commit,
  type CommitReply,
  type KeptHost,
  type LeaseRecord,
  MemoryStore,
  type MemoryStoreOptions,
} from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { HolderAbout } from "./holder.ts";
import type { KeptLease, LeaseFiles } from "./lease-files.ts";

interface KeptStoreInit extends Pick<MemoryStoreOptions, "clock"> {
  readonly files: LeaseFiles;
  /** The leases of the earlier keeper that are still held. */
  readonly leases: readonly KeptLease[];
  holderOf(session: string): HolderAbout | undefined;
  onCommit(host: string, changes: Changes): void;
}

/**
 * The memory store of a keeper: it writes each lease to a file before the commit is accepted, and removes the file of
 * each lease that ends. A commit whose file cannot be written fails, and the engine repeats it.
 */
export class KeptStore extends MemoryStore {
  readonly #init: KeptStoreInit;
  /** The leases with a file, by token. */
  readonly #kept = new Map<string, { readonly host: string; readonly slot: number; readonly lease: LeaseRecord }>();
  /** Why the last lease could not be written. */
  failure: NodeJS.ErrnoException | undefined;

  constructor(init: KeptStoreInit) {
    super({ clock: init.clock, hosts: hostsOf(init.leases, init.clock) });
    this.#init = init;
    for (const { host, slot, lease } of init.leases) this.#kept.set(lease.key, { host, slot, lease });
  }

  /** The number of the slot, from 1; `undefined` if the token holds none. */
  slotOf(token: string): number | undefined {
    return this.#kept.get(token)?.slot;
  }

  override commit(commit: Commit): CommitReply | Promise<CommitReply> {
    const { host, changes } = commit;
    try {
      this.#keep(host, changes);
      this.failure = undefined;
    } catch (error) {
      this.failure = error as NodeJS.ErrnoException;
      return Promise.reject(error);
    }
    const reply = super.commit(commit);
    this.#init.onCommit(host, changes);
    return reply;
  }

  /** Ends come first: a lease that its holder has released must not count again because this process was killed here. */
  #keep(host: string, { head, puts, dels }: Changes): void {
    for (const [kind, key] of dels) {
      const kept = kind === "lease" ? this.#kept.get(key) : undefined;
      if (kept === undefined) continue;
      this.#init.files.remove(kept.lease);
      this.#kept.delete(key);
    }
    for (const lease of puts) {
      if (lease.kind !== "lease" || this.#kept.has(lease.key) || head === undefined) continue;
      const slot = this.#freeSlot(host);
      const holder = this.#init.holderOf(lease.session);
      const { hostname = "", slots: capacity } = head;
      // A holder that has ended since needs no file: its lease is given back at once.
      if (holder !== undefined) this.#init.files.write({ host, hostname, capacity, slot, lease, holder });
      this.#kept.set(lease.key, { host, slot, lease });
    }
  }

  #freeSlot(host: string): number {
    const used = new Set(Array.from(this.#kept.values(), (kept) => (kept.host === host ? kept.slot : 0)));
    let slot = 1;
    while (used.has(slot)) slot++;
    return slot;
  }
}

function hostsOf(leases: readonly KeptLease[], clock: Clock): KeptHost[] {
  const byHost = new Map<string, KeptLease[]>();
  for (const kept of leases) byHost.set(kept.host, [...(byHost.get(kept.host) ?? []), kept]);
  return Array.from(byHost, ([host, kept]) => ({ host, tag: "1.restored", ...imageOf(kept, clock.now()) }));
}

function imageOf(kept: readonly KeptLease[], now: number): Pick<KeptHost, "head" | "records"> {
  const [first] = kept;
  const records = kept.map(({ lease }) => ({ ...lease, grantedAt: Math.min(lease.grantedAt, now) }));
  const slots = first?.capacity ?? 1;
  return {
    head: {
      hostname: first?.hostname,
      slots,
      capacity: slots,
      fence: Math.max(...records.map(({ fence }) => fence)),
      now,
      progress: 0,
      meterAt: now,
      breaker: { code: 0, errors: 0, successes: 0, consecutive: 0 },
      avgWaitMs: 0,
      isHot: false,
    },
    records,
  };
}
