import type { ServiceState } from "./wire.ts";

type HostState = ServiceState["hosts"][number];
type SessionState = HostState["sessions"][number];

/** Why a session waits, as sentences for the person on call. */
export interface WaitCause {
  /** What the session waits for. */
  readonly cause: string;
  /** When that ends, or what sets it. */
  readonly more: string;
}

/** Texts that are made safe, or counted down, for the place where they are shown. */
export interface ShownTexts {
  readonly bucket: string;
  /** How long an open breaker stays open. */
  readonly breakerLeft: string;
}

const ASLEEP: WaitCause = {
  cause: "Its client is not connected.",
  more: "No poll is open for this session. It keeps its place, but only a client with an open poll gets a slot.",
};

/**
 * Why a session of the state waits, as `slotkeeper who` and the dashboard show it.
 *
 * @example
 * ```ts
 * import { type ServiceState, waitCause } from "@slotkeeper/protocol";
 *
 * const { hosts } = (await (await fetch("http://127.0.0.1:8080/api/v0/state")).json()) as ServiceState;
 * for (const host of hosts) {
 *   const [first] = host.sessions;
 *   if (first) console.log(waitCause(first, host, { bucket: first.bucket, breakerLeft: "a while" }).cause);
 * }
 * ```
 */
export function waitCause(session: SessionState, host: HostState, shown: ShownTexts): WaitCause {
  if (!session.isAwake) return ASLEEP;
  const { slots, limits, limit = 0, inFlight } = host;
  if (session.blockedBy?.startsWith("key:") === true) return fullKey(session.blockedBy.slice("key:".length));
  switch (session.blockedBy) {
    case "host-limit":
      return {
        cause: `All slots of this host are in use: ${inFlight} of ${limit}.`,
        more: "It gets a slot when a holder releases one or a lease expires.",
      };
    case "ip-limit": {
      const own = slots.filter(({ bucket }) => bucket === session.bucket).length;
      return {
        cause: `Its bucket “${shown.bucket}” already has ${own} ${own === 1 ? "slot" : "slots"}; the limit per bucket is ${limits.maxSlotPerIp.value}.`,
        more: "It gets a slot when its own bucket releases one, even if other slots are free.",
      };
    }
    case "cooldown":
      return {
        cause: `Its bucket “${shown.bucket}” has just released a slot and has to wait.`,
        more: "The time is set by ipCooldownSeconds in the configuration.",
      };
    case "width":
      return {
        cause: `It needs ${session.width} slots, and ${Math.max(0, limit - inFlight)} are free.`,
        more: "It gets them when enough holders release their slots or their leases expire.",
      };
    case "behind-first":
      return {
        cause: "Another session is first and needs more slots than are free.",
        more: "No other session gets a slot until that session has its slots.",
      };
    case "waiter-pool":
      return {
        cause: "The waiter pool of this host is full.",
        more: "It keeps its arrival time, and joins the pool when a place becomes free. maxWaitersPerHost and maxWaitersPerIp set the size of the pool.",
      };
    case "breaker":
      return brokenHost(host, shown);
    case "paused":
      return {
        cause: "An operator has paused this host: it grants nothing new.",
        more: "Holders keep their slots. `slotkeeper resume` lets it go on.",
      };
    case "store":
      return { cause: "The store does not answer.", more: "Nothing is granted until it does." };
    case undefined:
    default:
      return { cause: "Nothing blocks it.", more: "It is granted in the next cycle of this host." };
  }
}

function fullKey(name: string): WaitCause {
  return {
    cause: `Its “${name}” is at a limit of its own: its slots are in use, or a budget has to refill.`,
    more: `Requests with the same “${name}” share that limit, and the oldest goes first. It is set by keys.${name} in the configuration.`,
  };
}

function brokenHost(host: HostState, { breakerLeft }: ShownTexts): WaitCause {
  if (host.breaker === "open") {
    return {
      cause: `The breaker is open: ${breakerCause(host)}.`,
      more: `Single requests are let through in ${breakerLeft}.`,
    };
  }
  return {
    cause: "The breaker is testing the host.",
    more: "One trial request at a time is let through. After a success all requests pass again.",
  };
}

/** Why the breaker is open; empty if it is closed. */
export function breakerCause({ breakerCode }: Pick<HostState, "breakerCode">): string {
  if (breakerCode === undefined) return "";
  return breakerCode === 0 ? "an operator opened it" : `the host answered ${breakerCode} too often`;
}
