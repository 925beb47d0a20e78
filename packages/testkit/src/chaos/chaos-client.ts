import { setTimeout as pause } from "node:timers/promises";
import type { CallName } from "../history/line.ts";
import type { Demand } from "../load/constrained-host.ts";
import { Caller, type Reply } from "./caller.ts";
import type { History, SessionRecord } from "./history.ts";

/** The behaviour of the clients of one host. */
export interface ClientPlan {
  readonly host: string;
  readonly holdMs: number;
  readonly pauseMs: number;
  /** What each request asks for beside a slot. */
  readonly demand?: (random: () => number) => Demand;
}

interface Grant {
  readonly slotToken: string;
  readonly queryToken: string;
  /** When the lease ends, counted from before the call was sent. */
  readonly leaseUntil: number;
  readonly leaseMs: number;
}

/** Longer than the service holds a poll. */
const ACQUIRE_TIMEOUT_MS = 9_000;
const CALL_TIMEOUT_MS = 2_500;
const RETRY_MS = 100;
/** How often a holder checks whether it should end. */
const LOOKS_EVERY_MS = 1_000;
/** A lease is renewed after this part of it, counted from the sending of the call, as our client does. */
const RENEW_AT = 1 / 3;
/** The percentage of grants that are requested once more, as after a lost answer. */
const REPEATED_PERCENT = 5;
/** How long an overstaying client uses its slot, in leases. */
const OVERSTAYED_LEASES = 2;

/**
 * A closed loop: it asks for a slot, uses it, releases it, and pauses. It follows the contract: it repeats failed
 * calls, renews in time, and stops using a slot when its lease has ended by its own clock. Everything that it sees goes
 * into the history.
 */
export class ChaosClient {
  readonly #plan: ClientPlan;
  readonly #bucket: string;
  readonly #history: History;
  readonly #caller: Caller;
  readonly #random: () => number;
  #session: SessionRecord | undefined;
  #isStopping = false;
  #isDead = false;
  /** Breaks the contract: the next slot is used without renewal until long after its lease. */
  overstays = false;

  constructor(url: string, plan: ClientPlan, bucket: string, history: History, random: () => number) {
    this.#plan = plan;
    this.#bucket = bucket;
    this.#history = history;
    this.#caller = new Caller(url, history.recorder);
    this.#random = random;
  }

  get isHolding(): boolean {
    return this.#session?.use?.until === Number.POSITIVE_INFINITY;
  }

  async run(): Promise<void> {
    await pause(this.#random() * (this.#plan.holdMs + this.#plan.pauseMs));
    while (!this.#isStopping && !this.#isDead) {
      const session = this.#history.ask(this.#plan.host, this.#bucket);
      this.#session = session;
      const { ask, used } = this.#plan.demand?.(this.#random) ?? {};
      const grant = await this.#acquire(session, ask);
      if (grant !== undefined && !this.#isDead) await this.#use(session, grant, used);
      this.#session = undefined;
      await pause(this.#plan.pauseMs * (0.5 + this.#random()));
    }
    this.#caller.close();
  }

  /** Starts no more sessions. The open session continues to its end, and its slot is released. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Ends at once, without a release. */
  die(): void {
    this.#isDead = true;
    const now = performance.now();
    if (this.#session !== undefined) {
      this.#session.diedAt = now;
      if (this.#session.use !== undefined) this.#session.use.until = now;
      this.#recordUse(this.#session);
    }
    this.#caller.close();
  }

  /** Returns `undefined` if the session ended without a grant. */
  async #acquire(session: SessionRecord, ask: Demand["ask"] | undefined): Promise<Grant | undefined> {
    const { id: requestId, host: hostname, bucket: ipBucket } = session;
    let message: object = { hostname, ipBucket, requestId, waitMs: 600_000, ...ask };
    while (!this.#isDead) {
      const sentAt = performance.now();
      const { status, body } = await this.#call("acquire", message, ACQUIRE_TIMEOUT_MS);
      if (status !== 200) {
        session.failedCalls++;
        await pause(RETRY_MS);
      } else if (body["result"] === "granted") return this.#granted(session, body, sentAt);
      else if (body["result"] === "pending") {
        message = { queryToken: body["queryToken"] };
        if (body["blockedBy"] === "store") session.wasBlockedByStore = true;
      } else return undefined;
    }
    return undefined;
  }

  #granted(session: SessionRecord, body: Reply["body"], sentAt: number): Grant {
    const { slotToken, queryToken, fence, leaseMs } = body as unknown as Grant & { fence: number; leaseMs: number };
    session.deliveries.push({ slotToken, fence, at: performance.now() });
    return { slotToken, queryToken, leaseUntil: sentAt + leaseMs, leaseMs };
  }

  async #use(session: SessionRecord, grant: Grant, used: Demand["used"] | undefined): Promise<void> {
    const use = { from: performance.now(), until: Number.POSITIVE_INFINITY };
    session.use = use;
    const isRepeated = this.#random() * 100 < REPEATED_PERCENT;
    const asked = isRepeated ? this.#askAgain(session, grant) : undefined;
    if (this.overstays) await this.#overstay(grant);
    else await this.#hold(session, grant, use.from + this.#plan.holdMs * (0.8 + 0.4 * this.#random()));
    // A client that died no longer uses its slot, and reports nothing.
    if (this.#isDead) return;
    use.until = performance.now();
    this.#recordUse(session);
    await asked;
    await this.#release({ slotToken: grant.slotToken, used });
  }

  #recordUse({ use, deliveries: [first] }: SessionRecord): void {
    if (use === undefined || first === undefined) return;
    this.#history.recorder.note({ kind: "use", slotToken: first.slotToken, ...use });
  }

  /** Holds until the end of the hold or of the lease; in the second case the slot is lost. */
  async #hold(session: SessionRecord, { slotToken, leaseUntil, ...grant }: Grant, until: number): Promise<void> {
    let endsAt = leaseUntil;
    let { leaseMs } = grant;
    while (!this.#isDead) {
      const now = performance.now();
      if (now >= until || this.#isStopping) return;
      if (now >= endsAt) {
        session.lostLeaseAt = now;
        return;
      }
      const renewAt = endsAt - leaseMs * (1 - RENEW_AT);
      if (now < renewAt) {
        await pause(Math.min(until, renewAt, now + LOOKS_EVERY_MS) - now);
        continue;
      }
      const { status, body } = await this.#call("renew", { slotToken }, Math.min(CALL_TIMEOUT_MS, endsAt - now));
      if (status === 200) {
        leaseMs = body["leaseMs"] as number;
        endsAt = now + leaseMs;
      } else if (status === 410 && !this.#isDead) {
        session.lostLeaseAt = performance.now();
        return;
      } else await pause(RETRY_MS);
    }
  }

  async #overstay({ leaseUntil }: Grant): Promise<void> {
    this.overstays = false;
    await pause((leaseUntil - performance.now()) * OVERSTAYED_LEASES);
  }

  async #askAgain(session: SessionRecord, { queryToken }: Grant): Promise<void> {
    const sentAt = performance.now();
    const { status, body } = await this.#call("acquire", { queryToken }, ACQUIRE_TIMEOUT_MS);
    if (status === 200 && body["result"] === "granted") this.#granted(session, body, sentAt);
  }

  async #release(message: { readonly slotToken: string; readonly used: Demand["used"] | undefined }): Promise<void> {
    while (!this.#isDead) {
      const { status } = await this.#call("release", message, CALL_TIMEOUT_MS);
      if (status === 200) return;
      await pause(RETRY_MS);
    }
  }

  async #call(call: CallName, message: object, timeoutMs: number): Promise<Reply> {
    this.#history.calls++;
    const reply = await this.#caller.post(call, message, timeoutMs);
    const isFailed = reply.status === undefined || reply.status >= 500;
    if (isFailed && !this.#isDead)
      this.#history.failedCalls.push({ at: performance.now(), call, status: reply.status });
    return reply;
  }
}
