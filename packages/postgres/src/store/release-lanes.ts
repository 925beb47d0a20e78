import type { HostPolicy, ReleaseReply, ReleaseRequest } from "@slotkeeper/queue";
import type { SlotDatabase } from "./slot-database.ts";
import { policyRecord, releaseRecord } from "./wire-records.ts";

interface Pending {
  readonly request: ReleaseRequest;
  readonly resolve: (reply: ReleaseReply | Promise<ReleaseReply>) => void;
  readonly reject: (error: unknown) => void;
}

type WireReply = ReleaseReply | { readonly elsewhere: string };

/** A statement is bounded, so that it does not keep the host long. */
const MAX_BATCH = 64;

/**
 * Brings releases to the database, those of one host that come together in one statement.
 *
 * R1 at most one statement of releases per host is under way: the host's lock would only make a second one wait, and the
 * connection with it. R2 what comes meanwhile goes together in the next. R3 each caller gets the answer to its own
 * release, and the failure of a statement is the failure of each. R4 a release without a host, or with a wrong one, goes
 * alone by its token.
 */
export class ReleaseLanes {
  readonly #database: SlotDatabase;
  readonly #waiting = new Map<string, Map<HostPolicy | undefined, Pending[]>>();

  constructor(database: SlotDatabase) {
    this.#database = database;
  }

  release(request: ReleaseRequest): Promise<ReleaseReply> {
    const { host, policy } = request;
    if (host === undefined) return this.#alone(request);
    return new Promise((resolve, reject) => {
      const lane = this.#waiting.get(host) ?? this.#start(host);
      const batch = lane.get(policy);
      const pending = { request, resolve, reject };
      if (batch === undefined) lane.set(policy, [pending]);
      else batch.push(pending);
    });
  }

  #start(host: string): Map<HostPolicy | undefined, Pending[]> {
    const lane = new Map<HostPolicy | undefined, Pending[]>();
    this.#waiting.set(host, lane);
    // After the current turn: what arrives together goes together.
    void Promise.resolve().then(() => this.#drain(host, lane));
    return lane;
  }

  async #drain(host: string, lane: Map<HostPolicy | undefined, Pending[]>): Promise<void> {
    for (let [first] = lane; first !== undefined; [first] = lane) {
      const [policy, waiting] = first;
      const batch = waiting.splice(0, MAX_BATCH);
      if (waiting.length === 0) lane.delete(policy);
      await this.#send(host, policy, batch);
    }
    this.#waiting.delete(host);
  }

  async #send(host: string, policy: HostPolicy | undefined, batch: readonly Pending[]): Promise<void> {
    try {
      const replies = await this.#call(
        host,
        policy,
        batch.map(({ request }) => request),
      );
      batch.forEach(({ request, resolve }, at) => {
        const reply = replies[at] as WireReply;
        resolve("elsewhere" in reply ? this.#alone(request) : reply);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  async #alone(request: ReleaseRequest): Promise<ReleaseReply> {
    const [reply] = await this.#call(null, undefined, [request]);
    return reply === undefined || "elsewhere" in reply ? { isReleased: false } : reply;
  }

  async #call(host: string | null, policy: HostPolicy | undefined, requests: readonly ReleaseRequest[]) {
    const reply = await this.#database.call("slotkeeper_release", {
      p_host: host,
      p_policy: policy === undefined ? null : policyRecord(policy),
      p_releases: requests.map(releaseRecord),
    });
    return reply as WireReply[];
  }
}
