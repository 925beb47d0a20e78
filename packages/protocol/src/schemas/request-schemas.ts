import { Type } from "typebox";
import { LIMITS } from "../limits.ts";
import { PATTERNS } from "./patterns.ts";

/**
 * What callers send. Fields not named here are ignored, `null` counts as absent, and so do empty names: callers of the
 * older service send both.
 */

const name = (maxLength: number, description: string) =>
  Type.String({ maxLength, pattern: PATTERNS.printable.source, description });

const hostname = name(LIMITS.hostnameLength, "the upstream's name; `sem:…` is a named semaphore");
const hostnameHash = name(
  LIMITS.hostnameHashLength,
  "its key, where the caller hashes: SHA-256 hex of the lower-cased name",
);
const ipBucket = name(
  LIMITS.bucketLength,
  "groups clients; absent or empty: one shared bucket without limit of its own",
);
const now = Type.Number({ description: "the caller's clock, milliseconds since the epoch" });
const status = Type.Integer({ minimum: 100, maximum: 599, description: "the upstream's answer, for the breaker" });
// `writeOnly`: tokens are secrets of their owners, and are never echoed in a problem.
const queryToken = Type.String({
  minLength: 1,
  maxLength: LIMITS.tokenLength,
  writeOnly: true,
  description: "names the session",
});
const slotToken = Type.String({ writeOnly: true, description: "what `granted` carried" });

/** The body of a first call to `acquire`. */
export const FirstCallSchema = Type.Object(
  {
    hostname: Type.Optional(hostname),
    hostnameHash: Type.Optional(hostnameHash),
    ipBucket: Type.Optional(ipBucket),
    now: Type.Optional(now),
    throttleTimeWindowSeconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: LIMITS.durationMs / 1000,
        description: "overrides `breaker.openSeconds` for the reading of this session; 0 counts as absent",
      }),
    ),
    requestId: Type.Optional(name(LIMITS.requestIdLength, "the same id gives the same session")),
    waitMs: Type.Optional(
      Type.Number({ minimum: 0, description: "above 0 this call waits, and may be granted; capped by `pollWindowMs`" }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: LIMITS.slots, description: "slots of a named semaphore (`sem:…` only)" }),
    ),
    maxWaitMs: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: LIMITS.durationMs,
        description: "the whole wait for a named semaphore (`sem:…` only)",
      }),
    ),
  },
  { description: "The first call. `hostname` or `hostnameHash` is required." },
);

/** The body of every later call to `acquire`. */
export const PollSchema = Type.Object({ queryToken, now: Type.Optional(now) }, { description: "Every later call." });

/** The body of a call to `release`. */
export const ReleaseSchema = Type.Object(
  {
    slotToken,
    hitUpstreamAtMs: Type.Optional(Type.Number({ description: "when the upstream was hit, by the caller's clock" })),
    status: Type.Optional(status),
    hostname: Type.Optional(hostname),
    hostnameHash: Type.Optional(hostnameHash),
    ipBucket: Type.Optional(ipBucket),
    now: Type.Optional(now),
  },
  {
    description: "Only `slotToken` must be right: a field that is not is left out of account, and the slot goes back.",
  },
);

/** The body of a call to `renew`. */
export const RenewSchema = Type.Object({ slotToken });
/** The body of a call to `cancel`. */
export const CancelSchema = Type.Object({ queryToken });
/** The body of a call to `report`. */
export const ReportSchema = Type.Object(
  { hostname: Type.Optional(hostname), hostnameHash: Type.Optional(hostnameHash), status },
  { description: "`hostname` or `hostnameHash` is required." },
);

/** An operator's call: an unknown key is refused. */
export const BreakerCallSchema = Type.Object(
  { state: Type.Enum(["open", "closed"], { description: "`open` lasts `breaker.openSeconds`, like any opening" }) },
  { additionalProperties: false },
);
