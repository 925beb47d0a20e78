import { HistoryRecorder } from "../history/recorder.ts";

/**
 * What the clients of a run saw, by one clock: `performance.now()` of their process. Nothing comes from the records of
 * the service, so a checker that reads it relies only on the clients.
 */

/** A grant as it arrived at a client. The same grant may arrive twice, after a lost answer. */
export interface Delivery {
  readonly slotToken: string;
  readonly fence: number;
  readonly at: number;
}

/** When a client used its slot: from the arrival of the answer until just before it sent the release. */
export interface Use {
  readonly from: number;
  /** `Infinity` while the slot is in use. */
  until: number;
}

export interface SessionRecord {
  readonly id: string;
  readonly host: string;
  readonly bucket: string;
  /** The time before its first call was sent. */
  readonly askedAt: number;
  /** The number of calls that failed before the grant. */
  failedCalls: number;
  /** Whether an answer contained `blockedBy: "store"`. */
  wasBlockedByStore: boolean;
  readonly deliveries: Delivery[];
  use: Use | undefined;
  /** Set if a renewal was refused or came too late, although the client renewed in time. */
  lostLeaseAt: number | undefined;
  /** Set if the client died, with or without its slot. */
  diedAt: number | undefined;
}

export interface FailedCall {
  readonly at: number;
  readonly call: string;
  /** `undefined` if there was no answer. */
  readonly status: number | undefined;
}

export class History {
  /** Every call and answer, for the checker (`../history`). The rest is for the figures. */
  readonly recorder = new HistoryRecorder();
  readonly sessions: SessionRecord[] = [];
  readonly failedCalls: FailedCall[] = [];
  calls = 0;

  ask(host: string, bucket: string): SessionRecord {
    const session: SessionRecord = {
      id: `session-${this.sessions.length + 1}`,
      host,
      bucket,
      askedAt: performance.now(),
      failedCalls: 0,
      wasBlockedByStore: false,
      deliveries: [],
      use: undefined,
      lostLeaseAt: undefined,
      diedAt: undefined,
    };
    this.sessions.push(session);
    return session;
  }

  /** What living clients lost although they followed the contract: sessions without a slot, and leases. */
  get losses(): { readonly sessions: number; readonly leases: number } {
    const living = this.sessions.filter(({ diedAt }) => diedAt === undefined);
    return {
      sessions: living.filter(({ deliveries }) => deliveries.length === 0).length,
      leases: living.filter(({ lostLeaseAt }) => lostLeaseAt !== undefined).length,
    };
  }

  get grants(): number {
    return this.sessions.filter(({ deliveries }) => deliveries.length > 0).length;
  }
}
