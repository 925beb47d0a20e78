import type { TInteger } from "typebox";
import { LIMITS } from "../limits.ts";
import { HOST_LIMITS, LIVE_LIMITS, type LiveLimitKey } from "../settings/host-limits.ts";
import { PATTERNS } from "./patterns.ts";
import * as Type from "./type.ts";

/**
 * The bodies of requests. Unknown fields are ignored. `null` and empty names count as absent, because callers of the
 * original service send both.
 */

const name = (maxLength: number, description: string) =>
  Type.String({ maxLength, pattern: PATTERNS.printable.source, description });

const hostname = name(LIMITS.hostnameLength, "name of the upstream host; `sem:…` is a named semaphore");
const hostnameHash = name(
  LIMITS.hostnameHashLength,
  "key of the host: the SHA-256 of the lower-cased name in hex, or a key of the caller's own",
);
const bucket = name(
  LIMITS.bucketLength,
  "the client group; absent or empty: one shared bucket without a limit of its own",
);
const ipBucket = name(LIMITS.bucketLength, "the same as `bucket`, by the name of the original service");
const ignored = (field: string) => Type.Any({ description: `ignored: \`slotToken\` names the ${field}` });
const now = Type.Number({ description: "the time of the caller's clock, in milliseconds since 1970" });
const status = Type.Integer({
  minimum: 100,
  maximum: 599,
  description: "HTTP status of the upstream's answer, for the circuit breaker",
});
// `writeOnly`: tokens are secrets of their owners, and are never echoed in a problem.
const queryToken = Type.String({
  minLength: 1,
  maxLength: LIMITS.tokenLength,
  writeOnly: true,
  description: "the token of the session, from the last answer",
});
const slotToken = Type.String({ writeOnly: true, description: "the token of the slot, from the `granted` answer" });

/** The body of a first call to `acquire`. */
export const FirstCallSchema = Type.partial(
  {
    hostname: hostname,
    hostnameHash: hostnameHash,
    bucket: bucket,
    ipBucket: ipBucket,
    now: now,
    throttleTimeWindowSeconds: Type.Number({
      minimum: 0,
      maximum: LIMITS.durationMs / 1000,
      description: "overrides `breaker.openSeconds` for this session, up to an hour; 0 counts as absent",
    }),
    requestId: name(
      LIMITS.requestIdLength,
      "a first call with the same id continues the session, until its deadline or while it has its slot",
    ),
    waitMs: Type.Number({
      minimum: 0,
      description:
        "how long this call waits for a slot, at most `pollWindowMs`; 0 or absent: it does not wait and is never granted",
    }),
    width: Type.Integer({
      minimum: 1,
      maximum: LIMITS.slots,
      description: "number of slots that the request needs; they are granted together; absent: 1",
    }),
    cost: Type.recordOf(Type.Number({ minimum: 0 }), {
      description: "what the request costs of the host's budgets, by name; a budget that is not named: its default",
    }),
    keys: Type.recordOf(name(LIMITS.keyValueLength, "value of the key"), {
      description: "values for the host's keys, by name; requests with the same value share its limits",
    }),
    class: name(LIMITS.classLength, "class of the request, one of the host's; absent: `default`"),
    limit: Type.Integer({
      minimum: 1,
      maximum: LIMITS.slots,
      description: "number of slots of a named semaphore (only with `sem:…`)",
    }),
    maxWaitMs: Type.Number({
      exclusiveMinimum: 0,
      maximum: LIMITS.durationMs,
      description: "longest wait for a named semaphore (only with `sem:…`)",
    }),
  },
  { description: "The first call. `hostname` or `hostnameHash` is required." },
);

/** The body of every later call to `acquire`. */
export const PollSchema = Type.Object({ queryToken, now: Type.Optional(now) }, { description: "Every later call." });

/** The body of a call to `release`. */
export const ReleaseSchema = Type.Object(
  {
    slotToken,
    hitUpstreamAtMs: Type.Optional(
      Type.Number({ description: "when the caller sent its request to the upstream, by its own clock" }),
    ),
    status: Type.Optional(status),
    used: Type.Optional(
      Type.recordOf(Type.Number({ minimum: 0 }), {
        description:
          "what the request really cost of the host's budgets, by name; a budget that is not named keeps its charge",
      }),
    ),
    hostname: Type.Optional(ignored("host")),
    hostnameHash: Type.Optional(ignored("host")),
    bucket: Type.Optional(ignored("bucket")),
    ipBucket: Type.Optional(ignored("bucket")),
    now: Type.Optional(now),
  },
  {
    description:
      "Only `slotToken` must be valid. Other invalid fields are ignored, and the slot is released. The answer names what was ignored in `used`.",
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

/** The body of an operator's call to pause a host. Unknown keys are refused. */
export const PauseCallSchema = Type.Object(
  { paused: Type.Boolean({ description: "true: nothing new is granted; false: the host goes on" }) },
  { additionalProperties: false },
);

/** The body of an operator's call for the breaker. Unknown keys are refused. */
export const BreakerCallSchema = Type.Object(
  { state: Type.Enum(["open", "closed"], { description: "`open` lasts for `breaker.openSeconds`" }) },
  { additionalProperties: false },
);

type LiveCall = { [K in LiveLimitKey]: TInteger };

/** The body of an operator's call for live limits. Unknown keys are refused, because a misspelt key would remove a limit. */
export const LiveLimitsSchema = Type.section(
  Object.fromEntries(LIVE_LIMITS.map(({ key }) => [key, callOf(key)])) as LiveCall,
  {
    description: "All live limits of the host. A limit that is absent here returns to its configured value.",
  },
);

function callOf(key: LiveLimitKey) {
  const limit = HOST_LIMITS[key];
  const isOffAt0 = "isOffAt0" in limit;
  return Type.Integer({
    minimum: "min" in limit ? limit.min : 0,
    maximum: LIMITS.slots,
    description: isOffAt0 ? "0: no limit; absent: the configured value" : "absent: the configured value",
  });
}
