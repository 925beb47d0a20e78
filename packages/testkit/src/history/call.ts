import { createHash } from "node:crypto";
import type { CallName } from "./line.ts";

/** A line of the kind `call`, with the fields of both bodies that the rules use. */
export interface Call {
  /** The number of its line in the history. */
  readonly line: number;
  readonly client: string;
  readonly name: CallName;
  readonly sentAt: number;
  /** `Infinity` if there was no answer. */
  readonly answeredAt: number;
  /** When the client stopped waiting; `Infinity` if it never did. */
  readonly gaveUpAt: number;
  /** The key of the host, if the request names one. */
  readonly host: string | undefined;
  readonly bucket: string;
  readonly requestId: string | undefined;
  readonly waitMs: number;
  /** How many slots the request asks for, or the answer grants. */
  readonly width: number;
  /** What the request says that it costs, what the answer says that it was charged, and what a release says was used. */
  readonly cost: Amounts;
  readonly charged: Amounts;
  readonly used: Amounts;
  /** The values of the request for keys of the host. */
  readonly keys: { readonly [name: string]: string };
  /** The class of the request: `default` if it names none. */
  readonly class: string;
  /** The longest wait that the request asks for; named semaphores only. */
  readonly maxWaitMs: number | undefined;
  /** The query token, slot token or slot that the request names. */
  readonly token: string | undefined;
  /** The status of the upstream that the request reports. */
  readonly reported: number | undefined;
  /** How long ago the upstream was called when a release was sent, by the client's clock; `NaN` if it does not say. */
  readonly hitAgeMs: number;
  /** For how long the session takes an open breaker for open, if the request overrides the configuration. */
  readonly openMs: number | undefined;
  /** The live limits or the breaker's state that an operator sets. */
  readonly set: { readonly [key: string]: unknown };
  readonly httpStatus: number | undefined;
  readonly result: string | undefined;
  readonly queryToken: string | undefined;
  readonly slotToken: string | undefined;
  readonly fence: number;
  readonly leaseMs: number;
  readonly limit: number | undefined;
  /** For how much longer the breaker is open, at most, as a `throttled` answer says. */
  readonly retryAfterMs: number | undefined;
  readonly reason: string | undefined;
  readonly blockedBy: string | undefined;
}

/** Amounts of budgets, by name. */
export type Amounts = { readonly [budget: string]: number };

export function isAnswered({ answeredAt }: Call): boolean {
  return answeredAt !== Number.POSITIVE_INFINITY;
}

/** Whether the call was accepted: status 2xx. */
export function isDone({ httpStatus = 0 }: Call): boolean {
  return httpStatus >= 200 && httpStatus < 300;
}

export function isPending({ result, blockedBy }: Call): boolean {
  return result === "pending" && blockedBy !== "store";
}

export const byTime = (a: Call, b: Call) => a.sentAt - b.sentAt || a.line - b.line;

const keys = new Map<string, string>();

/**
 * The key of a host: its hash in lower case, otherwise the SHA-256 of the lower-cased name without a trailing dot
 * (docs/reference/http.md, "Naming a host").
 */
export function hostKey(hostname: string | undefined, hash?: string): string | undefined {
  if (hash !== undefined) return hash.toLowerCase();
  if (hostname === undefined) return undefined;
  let key = keys.get(hostname);
  if (key === undefined) {
    const name = hostname.toLowerCase().replace(/\.$/, "");
    key = createHash("sha256").update(name).digest("hex");
    keys.set(hostname, key);
  }
  return key;
}
