import { Type } from "typebox";
import { LIMITS } from "../limits.ts";

/**
 * What callers send. Fields not named here are ignored, `null` counts as absent, and so do empty names: callers of the
 * older service send both.
 */

const PRINTABLE = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$";
const name = (maxLength: number, description: string) => Type.String({ maxLength, pattern: PRINTABLE, description });

const hostname = name(LIMITS.hostnameLength, "the upstream's name; `sem:…` is a named semaphore");
const hostnameHash = name(LIMITS.hostnameHashLength, "its key, where the caller hashes: SHA-256 hex of the lower-cased name");
const ipBucket = name(LIMITS.bucketLength, "groups clients; absent or empty: one shared bucket without limit of its own");
const now = Type.Number({ description: "the caller's clock, milliseconds since the epoch" });
const status = Type.Integer({ minimum: 100, maximum: 599, description: "the upstream's answer, for the breaker" });
const queryToken = Type.String({ minLength: 1, maxLength: LIMITS.tokenLength, description: "names the session" });

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

export const PollSchema = Type.Object({ queryToken, now: Type.Optional(now) }, { description: "Every later call." });

export const ReleaseSchema = Type.Object(
  {
    slotToken: Type.String({ description: "what `granted` carried" }),
    hitUpstreamAtMs: Type.Optional(Type.Number({ description: "when the upstream was hit, by the caller's clock" })),
    status: Type.Optional(status),
    hostname: Type.Optional(hostname),
    hostnameHash: Type.Optional(hostnameHash),
    ipBucket: Type.Optional(ipBucket),
    now: Type.Optional(now),
  },
  { description: "Only `slotToken` must be right: a field that is not is left out of account, and the slot goes back." },
);

export const RenewSchema = Type.Object({ slotToken: Type.String() });
export const CancelSchema = Type.Object({ queryToken });
export const ReportSchema = Type.Object(
  { hostname: Type.Optional(hostname), hostnameHash: Type.Optional(hostnameHash), status },
  { description: "`hostname` or `hostnameHash` is required." },
);
