import type * as Port from "@slotkeeper/queue";
import { sweep } from "./cleanup.ts";
import { ReleaseLanes } from "./release-lanes.ts";
import { PgDatabase, type SlotDatabase } from "./slot-database.ts";
import { batchRecord, policyRecord, withdrawRecord } from "./wire-records.ts";

export interface PostgresStoreOptions {
  readonly dsn: string;
  /** Where `migrate` put the tables. */
  readonly schema?: string | undefined;
  readonly poolSize?: number | undefined;
  /** When a call is given up. */
  readonly timeoutMs?: number | undefined;
}

const DEFAULTS = { schema: "public", poolSize: 10, timeoutMs: 5_000 } as const;

/** A third of what the database believes a silent waiter, so that one lost beat costs nobody his place. */
const HEARTBEAT_MS = 1_500;

/**
 * The store of a fleet: every promise of the port is kept by SQL functions that lock the host's row, so that any number of
 * instances and direct callers share one truth (docs/explanation/postgres.md).
 *
 * Each call is one statement and one transaction, by the database's clock. Without a push: `onFreed` tells of slots that
 * this instance's withdrawals and operators freed; of a release its own answer tells; the others' are found by the poll.
 */
export class PostgresStore implements Port.SlotStore {
  readonly heartbeatMs = HEARTBEAT_MS;
  readonly #database: SlotDatabase;
  readonly #releases: ReleaseLanes;
  readonly #listeners = new Set<(freed: Port.FreedEvent) => void>();

  /** Connects, and throws a `SchemaError` where the schema is not this version's. */
  static async open(options: PostgresStoreOptions): Promise<PostgresStore> {
    const database = new PgDatabase({
      dsn: options.dsn,
      schema: options.schema ?? DEFAULTS.schema,
      poolSize: options.poolSize ?? DEFAULTS.poolSize,
      timeoutMs: options.timeoutMs ?? DEFAULTS.timeoutMs,
    });
    try {
      await database.check();
      return new PostgresStore(database);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  constructor(database: SlotDatabase) {
    this.#database = database;
    this.#releases = new ReleaseLanes(database);
  }

  async checkThrottle({ host, policy }: Port.ThrottleQuery): Promise<Port.ThrottleState> {
    const given = { p_host: host, p_open_ms: policy.breaker.openMs };
    return (await this.#database.call("slotkeeper_check_throttle", given)) as Port.ThrottleState;
  }

  async register(batch: Port.WaiterBatch): Promise<Port.BatchReply> {
    return (await this.#database.call("slotkeeper_register", { p_batch: batchRecord(batch) })) as Port.BatchReply;
  }

  async tryAcquire(batch: Port.WaiterBatch): Promise<Port.BatchReply> {
    return (await this.#database.call("slotkeeper_try_acquire", { p_batch: batchRecord(batch) })) as Port.BatchReply;
  }

  async withdraw(batch: Port.WithdrawBatch): Promise<void> {
    const freed = await this.#database.call("slotkeeper_withdraw", { p_batch: withdrawRecord(batch) });
    for (const bucket of freed as string[]) this.#tell(batch.host, bucket);
  }

  release(request: Port.ReleaseRequest): Promise<Port.ReleaseReply> {
    return this.#releases.release(request);
  }

  async renew({ slotToken }: { readonly slotToken: string }): Promise<Port.RenewReply | undefined> {
    const leaseMs = (await this.#database.call("slotkeeper_renew", { p_token: slotToken })) as number | null;
    return leaseMs === null ? undefined : { leaseMs };
  }

  async report({ host, policy, status }: Port.StatusReport): Promise<Port.BreakerView> {
    const given = { p_host: host, p_policy: policyRecord(policy), p_status: status };
    return (await this.#database.call("slotkeeper_report", given)) as Port.BreakerView;
  }

  cleanup(request: Port.CleanupRequest): Promise<Port.CleanupReply> {
    return sweep(this.#database, request);
  }

  async snapshot({ hosts }: Port.SnapshotQuery = {}): Promise<Port.StoreSnapshot> {
    return (await this.#database.call("slotkeeper_snapshot", { p_hosts: hosts ?? null })) as Port.StoreSnapshot;
  }

  async hostKeys(): Promise<readonly string[]> {
    return (await this.#database.call("slotkeeper_host_keys", {})) as string[];
  }

  async totals(): Promise<Port.StoreTotals> {
    return (await this.#database.call("slotkeeper_totals", {})) as Port.StoreTotals;
  }

  async announce({ instance, ttlMs, about }: Port.InstanceNotice): Promise<void> {
    await this.#database.call("slotkeeper_announce", { p_instance: instance, p_ttl_ms: ttlMs, p_about: about });
  }

  async instances(): Promise<readonly Port.InstanceView[]> {
    return (await this.#database.call("slotkeeper_instances", {})) as Port.InstanceView[];
  }

  async operate(action: Port.OperatorAction): Promise<boolean> {
    if (action.kind === "revoke") return this.#revoke(action.slot);
    const given = { p_host: action.host, p_policy: policyRecord(action.policy) };
    if (action.kind === "limits") {
      const { slots = null, slotsPerBucket = null } = action.limits ?? {};
      await this.#database.call("slotkeeper_set_limits", {
        ...given,
        p_slots: slots,
        p_slots_per_bucket: slotsPerBucket,
      });
    } else await this.#database.call("slotkeeper_set_breaker", { ...given, p_is_open: action.isOpen });
    this.#tell(action.host, undefined);
    return true;
  }

  onFreed(listener: (freed: Port.FreedEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Keys that sign session tokens: those the fleet has, or this one if it has none. */
  async tokenKeys(newKey: string): Promise<readonly string[]> {
    return (await this.#database.call("slotkeeper_token_keys", { p_new_secret: newKey })) as string[];
  }

  /** Whether the database answers and can be written. */
  async isReady(): Promise<boolean> {
    return this.#database.call("slotkeeper_ready", {}).then(
      (isReady) => isReady === true,
      () => false,
    );
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  async #revoke(slot: number): Promise<boolean> {
    const revoked = await this.#database.call("slotkeeper_revoke", { p_fence: slot });
    if (revoked === null) return false;
    const { host, bucket } = revoked as { host: string; bucket: string };
    this.#tell(host, bucket);
    return true;
  }

  #tell(host: string, bucket: string | undefined): void {
    for (const listener of this.#listeners) listener({ host, bucket, reservedFor: undefined });
  }
}
