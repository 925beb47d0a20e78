import { BLOCKED_BY_NAMES, type BlockedBy } from "../session.ts";
import * as Type from "./type.ts";

/** The answers of the service. A later version may add fields, but removes none of these. */

const wholeSeconds = Type.Integer({ minimum: 1, description: "whole seconds, also in the `Retry-After` header" });
const queryToken = Type.String({ minLength: 1, description: "token for the next call, at any instance" });

/** The session waits: poll again. */
export const PendingSchema = Type.Object({
  result: Type.Literal("pending"),
  queryToken,
  position: Type.Integer({ minimum: 1, description: "1 is next" }),
  waiters: Type.Integer({ minimum: 0, description: "sessions that wait for this host at this instance" }),
  estimatedWaitMs: Type.Optional(Type.Number({ minimum: 0, description: "absent while it cannot be estimated" })),
  blockedBy: Type.Optional(
    Type.Unsafe<BlockedBy>({
      type: "string",
      pattern: `^(?:${BLOCKED_BY_NAMES.join("|")}|budget:.+|key:.+)$`,
      description: `what the session waits for: ${BLOCKED_BY_NAMES.map((name) => `\`${name}\``).join(", ")}, \`budget:\` and the name of a budget, or \`key:\` and the name of a key; absent while it is not known`,
    }),
  ),
});

/** The session has a slot. */
export const GrantedSchema = Type.Object({
  result: Type.Literal("granted"),
  queryToken,
  slotToken: Type.String({
    minLength: 22,
    description: "secret token, at least 128 random bits; needed to release and to renew",
  }),
  limit: Type.Integer({ minimum: 1, description: "number of slots of the host" }),
  fence: Type.Integer({ minimum: 1, description: "number that grows with every grant of the host" }),
  leaseMs: Type.Integer({ minimum: 1, description: "the slot expires after this time unless it is renewed" }),
  width: Type.Optional(Type.Integer({ minimum: 2, description: "number of slots that were granted; absent: 1" })),
  charged: Type.Optional(
    Type.recordOf(Type.Number({ minimum: 0 }), { description: "what was charged to the budgets of the host, by name" }),
  ),
});

/** The host's circuit breaker is open: the session has ended. */
export const ThrottledSchema = Type.Object({
  result: Type.Literal("throttled"),
  throttleCode: Type.Integer({ minimum: 0, description: "status that opened the breaker; 0: an operator opened it" }),
  throttleRetryAfter: wholeSeconds,
  reason: Type.String(),
});

/** The session has ended without a slot. */
export const TimeoutSchema = Type.Object({
  result: Type.Literal("timeout"),
  reason: Type.String({ description: "`deadline`, `idle`, `canceled`, `released`, `impossible`, `unknown-token`, …" }),
});

/** Too many sessions wait: there is no session. */
export const OverloadedSchema = Type.Object({
  result: Type.Literal("overloaded"),
  retryAfter: Type.Integer({ minimum: 1, maximum: 30, description: "whole seconds, also in the `Retry-After` header" }),
});

/** Any answer to `acquire`. */
export const AcquireAnswerSchema = Type.Union([
  PendingSchema,
  GrantedSchema,
  ThrottledSchema,
  TimeoutSchema,
  OverloadedSchema,
]);

/** A call that was accepted. */
export const OkSchema = Type.Object({ result: Type.Literal("ok") });
/** A release that was accepted. */
export const ReleasedSchema = Type.Object({
  result: Type.Literal("ok"),
  released: Type.Optional(
    Type.Literal(false, {
      description: "the token holds no slot; absent if it does, or if the service cannot know it without waiting",
    }),
  ),
  ignored: Type.Optional(
    Type.Array(Type.String(), {
      description:
        "what was ignored in `used`, and keeps its charge: `used.tokens` if the slot was charged no `tokens`, or the amount is not a number from 0 up",
    }),
  ),
});
/** A lease that was renewed. */
export const RenewedSchema = Type.Object({ result: Type.Literal("ok"), leaseMs: Type.Integer({ minimum: 0 }) });
/** What happened to the session. */
export const CanceledSchema = Type.Object({
  result: Type.Enum(["canceled", "gone", "noop"], {
    description:
      "`gone`: this instance does not have the session, and sends the cancellation to the store; `noop`: the session had already ended, or its slot was granted longer ago than `defaultGrantedCleanupDelay`",
  }),
});
/** The answer of `/livez`. */
export const AliveSchema = Type.Object({ status: Type.Literal("ok") });

/** The answer of `/readyz`. */
export const ReadySchema = Type.Object({
  status: Type.Literal("ok"),
  degraded: Type.Optional(
    Type.Array(Type.Object({ reason: Type.String(), detail: Type.String() }), {
      description: "slots are granted, but something does not work",
    }),
  ),
});

/** A refused request, as RFC 9457 describes it. */
export const ProblemSchema = Type.Object(
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer({ minimum: 400, maximum: 599 }),
    code: Type.String(),
    reason: Type.Optional(Type.String({ description: "only of `NOT_READY`: a code for the reason" })),
    detail: Type.Optional(Type.String()),
    errors: Type.Optional(
      Type.Array(Type.Object({ field: Type.String(), message: Type.String() }), { description: "one for each field" }),
    ),
  },
  { description: "A problem document (RFC 9457)." },
);
