import type { HostPolicy } from "../host-policy.ts";
import type { BreakerState } from "./breaker.ts";
import type { LiveLimits, SessionEnd } from "./slot-store.ts";

/**
 * What the memory store would have to know again after a crash, as values: each says how something stands from now on,
 * not what was asked. So a fact may be applied without the policy that led to it, twice is as once, and the facts of a
 * whole store, in any order of hosts and sessions, are a snapshot of it.
 *
 * Not among them, because losing it breaks no promise: the pool of waiters (sessions register again, with the arrival
 * their token carries) and the slot-seconds used (everybody starts level). Time ends leases without a fact.
 */
export type StoreFact =
  /** Precedes every other fact of its host. `capacity`: what the users of a named semaphore fixed. */
  | { readonly kind: "host"; readonly host: string; readonly policy: HostPolicy; readonly capacity?: number }
  | LeaseFact
  | { readonly kind: "renew"; readonly slot: number; readonly endsAt: number }
  /** The token is nobody's from now on; the slot is taken until `endsAt`, from which the next release is spaced. */
  | { readonly kind: "release"; readonly slot: number; readonly endsAt: number }
  /** Taken away: free now. */
  | { readonly kind: "over"; readonly slot: number }
  /** Nobody fetched it: free now, and the session may be granted again. */
  | { readonly kind: "undo"; readonly slot: number }
  /** Frees the session's slot, if it has one. */
  | { readonly kind: "end"; readonly session: string; readonly end: SessionEnd; readonly keepUntil: number }
  | { readonly kind: "spacing"; readonly host: string; readonly lastEndAt?: number }
  | { readonly kind: "cooldown"; readonly host: string; readonly bucket: string; readonly until: number }
  | { readonly kind: "breaker"; readonly host: string; readonly state: BreakerState }
  | { readonly kind: "limits"; readonly host: string; readonly limits?: LiveLimits }
  /** No fence up to this one is given out again. */
  | { readonly kind: "fence"; readonly fence: number };

/** A slot in somebody's hands; `slot` is its fence. */
export interface LeaseFact {
  readonly kind: "lease";
  readonly slot: number;
  readonly slotToken: string;
  readonly session: string;
  readonly host: string;
  readonly bucket: string;
  readonly weight: number;
  readonly grantedAt: number;
  readonly endsAt: number;
  readonly keepUntil: number;
  readonly isProbe: boolean;
  readonly isReleased: boolean;
}
