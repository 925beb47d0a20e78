/**
 * What the client accepts as an answer: the fields that the schemas of `@slotkeeper/protocol` require. The client has no
 * schema library, so the rules are written again here; a test compares the two.
 */
import { isObject } from "./options.ts";
import type { CallName } from "./transport.ts";

type Rule = (value: unknown) => boolean;

export const isText: Rule = (value) => typeof value === "string";

const textFrom =
  (least: number): Rule =>
  (value) =>
    isText(value) && (value as string).length >= least;

const integer =
  (least: number, most = Infinity): Rule =>
  (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most;

const isAmount: Rule = (value) => Number.isFinite(value) && (value as number) >= 0;

/** By call and `result`. A later version of the service may add fields, and values of `blockedBy`. */
const ANSWERS: { readonly [Name in CallName]: { readonly [result: string]: { readonly [field: string]: Rule } } } = {
  acquire: {
    pending: {
      queryToken: textFrom(1),
      position: integer(1),
      waiters: integer(0),
      estimatedWaitMs: (value = 0) => isAmount(value),
      blockedBy: (value = "") => isText(value),
    },
    granted: {
      queryToken: textFrom(1),
      slotToken: textFrom(22),
      limit: integer(1),
      fence: integer(1),
      leaseMs: integer(1),
      charged: (value = {}) =>
        isObject(value) && !Array.isArray(value) && Object.values(value as object).every(isAmount),
    },
    throttled: { throttleCode: integer(0), throttleRetryAfter: integer(1), reason: isText },
    timeout: { reason: isText },
    overloaded: { retryAfter: integer(1, 30) },
  },
  renew: { ok: { leaseMs: integer(0) } },
  release: { ok: {} },
  cancel: { canceled: {}, gone: {}, noop: {} },
};

/** Whether the body of an answer is what the service may answer to this call. */
export function isAnswer(name: CallName, body: unknown): boolean {
  const fields = Object(body) as { readonly [field: string]: unknown };
  const result = fields["result"] as string;
  const known = ANSWERS[name];
  // A list of one text is a key of an object, too.
  if (!isText(result) || !Object.hasOwn(known, result)) return false;
  return Object.entries(known[result] ?? {}).every(([field, accepts]) => accepts(fields[field]));
}
