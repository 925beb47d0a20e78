/**
 * The traces of slot holders, so that the trace of a call that waits can be linked to the traces of those it waits for.
 *
 * TRACE1  A `traceparent` is copied into answers to other traced calls of the same host, and its trace id into the log.
 *     Nothing else depends on it. A value without the exact form of W3C Trace Context, version 00, counts as absent.
 * TRACE2  Memory is bounded: the last `MOST_OF_A_HOST` traced holders of each of the last `MOST_HOSTS` hosts.
 * TRACE3  A call without a `traceparent` is neither recorded nor answered with one.
 *
 * It does not promise to know every holder. Each instance knows the slots that it granted to traced calls. If another
 * instance gets the release, the slot counts as held here until its lease ends.
 */
import type { BeginAnswer, BlockedBy } from "@slotkeeper/protocol";
import { hostOfToken } from "@slotkeeper/queue";
import type { Exchange } from "./exchange.ts";

/** The header of an answer that names the holders. */
export const HOLDERS_HEADER = "X-Slot-Holders";

const MOST_HOSTS = 1_000;
const MOST_OF_A_HOST = 16;
/** More links do not explain a wait better. It is also what the header may cost. */
const MOST_NAMED = 8;

const LENGTH = 55;
const TRACEPARENT = /^00-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}$/;

/** What a session waits for when it waits for a holder to end. */
const BY_HOLDERS = new Set<BlockedBy | undefined>(["host-limit", "ip-limit", "waiter-pool"]);

interface Holder {
  traceparent: string;
  /** The end of the slot, by the monotonic clock. In the past: it has ended. */
  endsAt: number;
}

/** A call of `acquire` that has a trace. */
export interface TracedCall {
  /** Adds the header, if the call waited for a known holder, and records a grant. */
  answered(answer: BeginAnswer): void;
}

/** The traces of the holders that this instance knows. */
export class HolderTraces {
  /** By host, then by slot token; the newest last. */
  readonly #hosts = new Map<string, Map<string, Holder>>();

  /** Returns `undefined` for a call without a trace. */
  waiting(exchange: Exchange): TracedCall | undefined {
    const traceparent = traceparentOf(exchange);
    if (traceparent === undefined) return undefined;
    const since = performance.now();
    return {
      answered: (answer) => {
        if (answer.result !== "pending" && answer.result !== "granted") return;
        const { host } = answer.session;
        const isGranted = answer.result === "granted";
        // A granted slot is one that a holder gave back in the meantime. A waiting session waits for every holder.
        const until = isGranted ? performance.now() : Infinity;
        const named = isGranted || BY_HOLDERS.has(answer.blockedBy) ? this.#heldUntil(host, since, until) : [];
        if (named.length > 0) exchange.setHeader(HOLDERS_HEADER, named.join(", "));
        if (isGranted) this.#record(host, answer.slotToken, traceparent, answer.leaseMs);
      },
    };
  }

  /** The holder released its slot (`leaseMs` 0) or renewed it. The span of these calls is the span of the hold. */
  holds(exchange: Exchange, slotToken: string, leaseMs: number): void {
    if (this.#hosts.size === 0) return;
    const holder = this.#hosts.get(hostOfToken(slotToken) ?? "")?.get(slotToken);
    if (holder === undefined) return;
    holder.traceparent = traceparentOf(exchange) ?? holder.traceparent;
    holder.endsAt = performance.now() + leaseMs;
  }

  #heldUntil(host: string, since: number, until: number): string[] {
    const holders = [...(this.#hosts.get(host)?.values() ?? [])];
    const named = holders.filter(({ endsAt }) => endsAt >= since && endsAt <= until);
    return [...new Set(named.map(({ traceparent }) => traceparent))].slice(-MOST_NAMED);
  }

  #record(host: string, slotToken: string, traceparent: string, leaseMs: number): void {
    const holders = this.#hosts.get(host) ?? new Map<string, Holder>();
    addNewest(holders, slotToken, { traceparent, endsAt: performance.now() + leaseMs }, MOST_OF_A_HOST);
    addNewest(this.#hosts, host, holders, MOST_HOSTS);
  }
}

/** Makes it the newest entry, and removes the oldest if there are too many. */
function addNewest<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest = key] = map.keys();
  if (map.size > most) map.delete(oldest);
}

/**
 * The valid `traceparent` of a request. Of several headers, which Node joins by a comma, it is the first: an
 * instrumentation of `fetch` adds its own after that of our client.
 */
export function traceparentOf(exchange: Pick<Exchange, "header">): string | undefined {
  const header = exchange.header("traceparent");
  if (header === undefined || (header.length > LENGTH && header[LENGTH] !== ",")) return undefined;
  const first = header.slice(0, LENGTH);
  return TRACEPARENT.test(first) ? first : undefined;
}
