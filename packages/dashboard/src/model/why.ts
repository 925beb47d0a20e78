import { count, nameOfBucket, plural, seconds } from "../format.ts";
import { breakerCause, breakerLeft } from "./breaker.ts";
import { forecastWords } from "./forecast.ts";
import type { HostState, SessionState, SlotState } from "./host-watch.ts";

/** Why a session waits, as text for the person on call. The cells of the slots show who holds them. */
export interface Why {
  /** The limit that the session waits for. */
  readonly cause: string;
  readonly more: string;
  readonly forecast: string;
}

interface Seen {
  readonly host: HostState;
  /** For a countdown that continues between two answers. */
  readonly sinceMs: number;
}

export function whyWaits(session: SessionState, { host, sinceMs }: Seen): Why {
  const reason = session.isAwake ? blocked(session, host, sinceMs) : ASLEEP;
  return { ...reason, forecast: forecastWords(session, host) };
}

/** Whether the session waits for this slot in particular, because its own bucket holds it. */
export function isAwaited(slot: SlotState, session: SessionState | undefined): boolean {
  return session?.blockedBy === "ip-limit" && session.isAwake && slot.bucket === session.bucket;
}

type Blocked = Pick<Why, "cause" | "more">;

const ASLEEP: Blocked = {
  cause: "Its client is not connected.",
  more: "No poll is open for this session. It keeps its place, but only a client with an open poll gets a slot.",
};

function blocked({ blockedBy, bucket }: SessionState, host: HostState, sinceMs: number): Blocked {
  const { slots, limits, limit = 0, inFlight } = host;
  const own = slots.filter((slot) => slot.bucket === bucket);
  switch (blockedBy) {
    case "host-limit":
      return {
        cause: `All slots of this host are in use: ${count(inFlight)} of ${count(limit)}.`,
        more: "It gets a slot when a holder releases one or a lease expires.",
      };
    case "ip-limit":
      return {
        cause: `Its bucket “${nameOfBucket(bucket)}” already has ${plural(own.length, "slot")}; the limit per bucket is ${count(limits.maxSlotPerIp.value)}.`,
        more: "It gets a slot when its own bucket releases one, even if other slots are free.",
      };
    case "cooldown":
      return {
        cause: `Its bucket “${nameOfBucket(bucket)}” has just released a slot and has to pause.`,
        more: "The pause is set by ipCooldownSeconds in the configuration.",
      };
    case "waiter-pool":
      return {
        cause: "The waiter pool of this host is full.",
        more: "It keeps its arrival time, and joins the pool when a place becomes free. maxWaitersPerHost and maxWaitersPerIp set the size of the pool.",
      };
    case "breaker":
      return brokenHost(host, sinceMs);
    case "store":
      return { cause: "The store does not answer.", more: "Nothing is granted until it does." };
    case undefined:
    default:
      return { cause: "Nothing blocks it.", more: "It is granted in the next cycle of this host." };
  }
}

function brokenHost(host: HostState, sinceMs: number): Blocked {
  const { breaker } = host;
  const left = breakerLeft(host, 0, sinceMs);
  return {
    cause: breaker === "open" ? `The breaker is open: ${breakerCause(host)}.` : "The breaker is testing the host.",
    more:
      breaker === "open"
        ? `Single requests are let through in ${seconds(left)}.`
        : "One trial request at a time is let through. After a success all requests pass again.",
  };
}
