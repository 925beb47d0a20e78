import { Type } from "typebox";
import { HostLimitsStateSchema } from "./live-limits.ts";

/** The state of one instance and its store, for the person on call. No token is in it. */

const count = Type.Integer({ minimum: 0 });

const BucketStateSchema = Type.Object({
  bucket: Type.String(),
  weight: Type.Number(),
  inFlight: count,
  waiting: Type.Integer({ minimum: 0, description: "sessions waiting, in the fleet" }),
  usedMs: Type.Number({ description: "slot time used; `usedMs / weight` against `progressMs` is its share" }),
});

const SlotStateSchema = Type.Object({
  slot: Type.String({ description: "`<host>.<fence>`: what `DELETE /slots/{id}` takes" }),
  session: Type.String(),
  bucket: Type.String(),
  heldMs: Type.Optional(Type.Number({ description: "since the grant" })),
  endsInMs: Type.Number({ description: "what is left of the lease" }),
  isReleased: Type.Boolean({ description: "given back, and running out the shortest hold or the spacing" }),
  isProbe: Type.Boolean({ description: "the trial request of a half-open breaker" }),
});

const SessionStateSchema = Type.Object({
  session: Type.String(),
  bucket: Type.String(),
  place: Type.String(),
  arrivedAt: Type.Number(),
  position: Type.Integer({ minimum: 1, description: "1 is next" }),
  blockedBy: Type.Optional(
    Type.String({ description: "what stands between it and a slot, as in the caller's answer" }),
  ),
  estimatedWaitMs: Type.Optional(Type.Number({ minimum: 0, description: "as in the caller's answer" })),
  isAwake: Type.Boolean({ description: "its client is there; else it keeps its place and is granted nothing" }),
  polls: Type.Integer({ minimum: 0, description: "held open for it" }),
});

/** What a table of hosts shows; `/events` sends the same. */
const hostRow = {
  host: Type.String({ description: "its key" }),
  hostname: Type.Optional(Type.String({ description: "where a caller has named it" })),
  limit: Type.Optional(
    Type.Integer({
      description: "slots; 0: a semaphore without users; absent where only this instance knows the host",
    }),
  ),
  inFlight: Type.Integer({ minimum: 0, description: "slots in use, in the fleet" }),
  waiting: Type.Integer({ minimum: 0, description: "sessions waiting, in the fleet" }),
  pending: Type.Integer({ minimum: 0, description: "sessions waiting at this instance" }),
  oldestWaitMs: Type.Number({ minimum: 0, description: "of those" }),
  avgWaitMs: Type.Number({ description: "moving average of the last waits, in the fleet" }),
  isHot: Type.Boolean({ description: "crowded, by the weighted scheduler's measure" }),
  breaker: Type.Enum(["closed", "open", "half-open"]),
  breakerCode: Type.Optional(Type.Integer({ description: "what opened it; 0: an operator" })),
  breakerEndsInMs: Type.Optional(Type.Number({ description: "until it is half open" })),
};

export const HostRowSchema = Type.Object(hostRow);

const HostStateSchema = Type.Object({
  ...hostRow,
  limits: HostLimitsStateSchema,
  progressMs: Type.Optional(
    Type.Number({ description: "the fair meter: slot time per weight a bucket that always waited would have used" }),
  ),
  buckets: Type.Array(BucketStateSchema),
  slots: Type.Array(SlotStateSchema),
  sessions: Type.Array(SessionStateSchema, { description: "by position, as many as asked for; `pending` counts all" }),
});

/** Each instance reports its counts with its beat: every second while sessions wait there, else every ten. */
const FleetStateSchema = Type.Object(
  {
    instances: Type.Integer({ minimum: 1, description: "that live" }),
    waiting: Type.Integer({ minimum: 0, description: "sessions waiting, at whichever instance" }),
    granted: Type.Integer({ minimum: 0, description: "slots, since each instance's start" }),
    rejected: Type.Integer({ minimum: 0, description: "callers that got no slot, since each instance's start" }),
  },
  { description: "summed over the instances that live" },
);

/** The answer of `GET …/state`. */
export const StateSchema = Type.Object({
  at: Type.Number(),
  instance: Type.String(),
  configVersion: Type.String(),
  sessions: Type.Record(Type.String(), count, { description: "by state, at this instance" }),
  counts: Type.Record(Type.String(), count, { description: "since the start, at this instance" }),
  fleet: Type.Optional(FleetStateSchema),
  unsent: Type.Integer({ minimum: 0, description: "calls that have not reached the store yet" }),
  total: Type.Integer({ minimum: 0, description: "hosts in all" }),
  hosts: Type.Array(HostStateSchema),
});
