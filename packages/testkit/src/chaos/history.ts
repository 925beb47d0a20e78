/**
 * What the clients of a run saw, by one clock: `performance.now()` of the process that they all live in. Nothing of it comes from the
 * service's own records, so that a checker that reads it relies on the clients only.
 */

/** A grant as it arrived at a client. The same grant may arrive twice, after a lost answer. */
export interface Delivery {
  readonly slotToken: string;
  readonly fence: number;
  readonly at: number;
}

/** When a client used its slot: from the answer's arrival until just before the release was sent. */
export interface Use {
  readonly from: number;
  /** Infinity while it lasts. */
  until: number;
}

export interface SessionRecord {
  readonly id: string;
  readonly host: string;
  readonly bucket: string;
  /** Before its first call was sent. */
  readonly askedAt: number;
  /** Calls that failed before it was granted. */
  failedCalls: number;
  /** Whether an answer said `blockedBy: "store"`. */
  wasBlockedByStore: boolean;
  readonly deliveries: Delivery[];
  use: Use | undefined;
  /** When its release was acknowledged. */
  releasedAt: number | undefined;
  /** It ended, and was not granted. */
  end: { readonly result: string; readonly at: number } | undefined;
  /** A renewal was refused, or came too late, although the client renewed in time. */
  lostLeaseAt: number | undefined;
  /** The client died, with or without its slot. */
  diedAt: number | undefined;
}

export interface FailedCall {
  readonly at: number;
  readonly call: string;
  /** Undefined: no answer. */
  readonly status: number | undefined;
}

export class History {
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
      releasedAt: undefined,
      end: undefined,
      lostLeaseAt: undefined,
      diedAt: undefined,
    };
    this.sessions.push(session);
    return session;
  }

  get grants(): number {
    return this.sessions.filter(({ deliveries }) => deliveries.length > 0).length;
  }
}
