import { dirname } from "node:path";
import { FairQueue, MemoryStore, type QueueEvent } from "@slotkeeper/queue";
import { realClock } from "slotkeeper";
import { endOfTurn } from "../platform/clock.ts";
import { NODE_DIGESTS, newSecret, newSessionId } from "../platform/node-crypto.ts";
import { hostKeys, QueryTokens } from "../queue/names.ts";
import type { ProcessIdentity } from "../store/journal/process-identity.ts";
import { Holders } from "./holders.ts";
import { hostsOf, KeptLeases, LeaseFiles } from "./kept-leases.ts";

const FOREVER_SECONDS = 10 * 365 * 86_400;

/** The kernel ends a lease, not a time. The first user of a name sets its slots, else it has one. */
export const KEEPER_QUEUE = {
  maxSlotPerHost: 1,
  maxSlotPerIp: -1,
  maxWaitersPerHost: 0,
  globalMaxWaiters: -1,
  maxWaitMs: 86_400_000,
  zombieTimeoutSeconds: FOREVER_SECONDS,
  maxHoldSeconds: FOREVER_SECONDS,
  collectMs: 1_000,
} as const;

/** The engine with its store and its holders. */
export class KeeperParts {
  readonly folder: string;
  readonly queue: FairQueue;
  readonly store: MemoryStore;
  readonly leases: KeptLeases;
  readonly holders: Holders;
  readonly keyOf = hostKeys(NODE_DIGESTS);
  readonly tokens: QueryTokens;
  readonly restored: number;
  observe: (event: QueueEvent) => void = () => {};

  constructor(leasePrefix: string, self: ProcessIdentity, isOwnFile: (name: string) => boolean) {
    this.folder = dirname(leasePrefix);
    const [boot = ""] = self.place.split(" ");
    // The folder protects the keeper, not this key. Tokens must outlive the keeper, but not the machine's start.
    this.tokens = new QueryTokens([`keeper ${boot}`], NODE_DIGESTS, this.keyOf);
    const files = new LeaseFiles(leasePrefix, boot, { folder: this.folder, isOwnFile });
    const leases = files.read();
    this.restored = leases.length;
    this.holders = new Holders({
      self,
      release: (slotToken) => this.queue.release({ slotToken }),
      cancel: ({ host, record: { key: id, bucket, arrivedAt, deadlineAt } }) =>
        void this.queue.cancel({ id, host, bucket, arrivedAt, deadlineAt }),
    });
    for (const { holder, lease } of leases) this.holders.restore(holder, lease);
    this.leases = new KeptLeases(files, leases, (session) => this.holders.find(session)?.about);
    this.store = new MemoryStore({
      clock: realClock,
      hosts: hostsOf(leases, realClock.now(), KEEPER_QUEUE),
      beforeCommit: this.leases.keep,
      onCommit: ({ host, changes }) => this.holders.apply(host, changes),
    });
    this.queue = new FairQueue({
      store: this.store,
      clock: realClock,
      newSessionId,
      newSecret,
      instance: `keeper-${self.id}`,
      config: KEEPER_QUEUE,
      observe: (event) => this.observe(event),
      soon: endOfTurn(),
    });
  }

  /** A process that is stopped (Ctrl+Z) got the answer, and cannot use the slot. A call that has arrived is read first. */
  expectHold(slotToken: string): void {
    const takeBack = () => {
      if (this.leases.takeBack(slotToken)) this.queue.release({ slotToken });
    };
    setTimeout(() => setImmediate(takeBack), KEEPER_QUEUE.collectMs);
  }
}
