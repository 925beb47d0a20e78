import type { TInteger, TObject, TString } from "typebox";
import { ABOUT_HOST_LIMITS } from "../settings/about.ts";
import { HOST_LIMITS, LIVE_LIMITS, type LiveLimitKey } from "../settings/host-limits.ts";
import * as Type from "./type.ts";

/** The state of one instance and its store, for the person on call. No token is in it. */

const count = Type.Integer({ minimum: 0 });

type LiveState = { [K in LiveLimitKey]: TObject<{ value: TInteger; origin: TString }> };

/** The limits that operators may set, as they are in force. */
const HostLimitsStateSchema = Type.Object(
  Object.fromEntries(LIVE_LIMITS.map(({ key }) => [key, stateOf(key)])) as LiveState,
);

function stateOf(key: LiveLimitKey) {
  const limit = HOST_LIMITS[key];
  return Type.Object({
    value: Type.Integer({
      description: `${ABOUT_HOST_LIMITS[key]}; 0: ${"isOffAt0" in limit ? "no limit" : "a semaphore without users"}`,
    }),
    origin: Type.String({
      description:
        "where the value comes from: `live` (an operator), `semaphore` (its users), or a layer of the configuration: `default`, `file config.json`, `controller`, `environment`, `flag`",
    }),
  });
}

const className = Type.Optional(Type.String({ description: "its class; absent: `default`" }));

const BucketStateSchema = Type.Object({
  bucket: Type.String(),
  class: className,
  weight: Type.Number(),
  inFlight: count,
  waiting: Type.Integer({ minimum: 0, description: "sessions waiting, in the fleet" }),
  usedMs: Type.Number({
    description:
      "slot time used; compare `usedMs / weight` with `progressMs`, at a host with classes with that of its class",
  }),
});

const SlotStateSchema = Type.Object({
  slot: Type.String({ description: "`<host>.<fence>`: the id for `DELETE /slots/{id}`" }),
  session: Type.String(),
  bucket: Type.String(),
  heldMs: Type.Optional(Type.Number({ description: "time since the grant" })),
  endsInMs: Type.Number({ description: "time left of the lease" }),
  isReleased: Type.Boolean({
    description: "released, but occupied until its minimum hold or the spacing of releases is over",
  }),
  isProbe: Type.Boolean({ description: "the trial request of a half-open breaker" }),
  width: Type.Integer({ minimum: 1, description: "number of slots that it occupies" }),
  class: className,
});

const SessionStateSchema = Type.Object({
  session: Type.String(),
  bucket: Type.String(),
  place: Type.String(),
  arrivedAt: Type.Number(),
  position: Type.Integer({ minimum: 1, description: "1 is next" }),
  blockedBy: Type.Optional(Type.String({ description: "what the session waits for, as in the caller's answer" })),
  estimatedWaitMs: Type.Optional(Type.Number({ minimum: 0, description: "as in the caller's answer" })),
  isAwake: Type.Boolean({ description: "its client is polling; if not, it keeps its place but gets no slot" }),
  polls: Type.Integer({ minimum: 0, description: "polls that are held open for it" }),
  width: Type.Integer({ minimum: 1, description: "number of slots that it needs" }),
  cost: Type.Optional(
    Type.recordOf(Type.Number({ minimum: 0 }), {
      description: "what it costs of the budgets, by name; a budget that is not named: its default",
    }),
  ),
  class: className,
});

const BudgetStateSchema = Type.Object({
  name: Type.String(),
  limit: Type.Number({ description: "units that flow in per `perSeconds`" }),
  perSeconds: Type.Number(),
  burst: Type.Number({ description: "most units that the budget holds" }),
  default: Type.Number({ minimum: 0, description: "cost of a request that does not name the budget" }),
  isShadow: Type.Boolean({ description: "it is charged and counted, but no request waits for it" }),
  available: Type.Number({ description: "units that can be charged now; below 0: a debt, and nothing is granted" }),
  fullInMs: Type.Number({ minimum: 0, description: "time until the budget is full, if nothing is charged meanwhile" }),
});

const ClassStateSchema = Type.Object({
  name: Type.String(),
  weight: Type.Number(),
  floor: Type.Integer({ minimum: 0, description: "slots that are its share at least while slots are short" }),
  ceiling: Type.Optional(Type.Integer({ description: "most slots of the class; absent: no limit" })),
  inFlight: count,
  waiting: Type.Integer({ minimum: 0, description: "sessions waiting, in the fleet" }),
  progressMs: Type.Optional(Type.Number({ description: "the fair meter of its buckets; absent: it was not used yet" })),
  share: Type.Optional(Type.Number({ minimum: 0, description: "slots that are its fair share now" })),
});

const KeyStateSchema = Type.Object({
  key: Type.String(),
  value: Type.String(),
  inFlight: count,
  waiting: Type.Integer({ minimum: 0, description: "sessions waiting, in the fleet" }),
  slots: Type.Optional(Type.Integer({ description: "most slots of its requests; absent: no limit" })),
  isShadow: Type.Boolean({ description: "its slots are counted, but no request waits for them" }),
  budgets: Type.Array(BudgetStateSchema, { description: "its own budgets" }),
});

/** What a table of hosts shows; `/events` sends the same. */
const hostRow = {
  host: Type.String({ description: "key of the host" }),
  hostname: Type.Optional(Type.String({ description: "name of the host, if a caller sent it" })),
  limit: Type.Optional(
    Type.Integer({
      description:
        "number of slots; 0: a named semaphore without users; absent if the store does not have the host yet",
    }),
  ),
  inFlight: Type.Integer({ minimum: 0, description: "slots in use, in the fleet" }),
  waiting: Type.Integer({ minimum: 0, description: "sessions waiting, in the fleet" }),
  pending: Type.Integer({ minimum: 0, description: "sessions waiting at this instance" }),
  oldestWaitMs: Type.Number({ minimum: 0, description: "how long the oldest session has waited, in the fleet" }),
  avgWaitMs: Type.Number({ description: "moving average of the last waits, in the fleet" }),
  isHot: Type.Boolean({ description: "whether the host is crowded, by the rule of the weighted scheduler" }),
  isPaused: Type.Boolean({ description: "an operator has paused the host: nothing new is granted, holders go on" }),
  breaker: Type.Enum(["closed", "open", "half-open"]),
  breakerCode: Type.Optional(Type.Integer({ description: "status that opened the breaker; 0: an operator opened it" })),
  breakerEndsInMs: Type.Optional(Type.Number({ description: "time until the breaker is half open" })),
};

export const HostRowSchema = Type.Object(hostRow);

const HostStateSchema = Type.Object({
  ...hostRow,
  limits: HostLimitsStateSchema,
  progressMs: Type.Optional(
    Type.Number({
      description: "the fair meter: the slot time that a bucket of weight 1 would have used if it had always waited",
    }),
  ),
  buckets: Type.Array(BucketStateSchema),
  budgets: Type.Optional(
    Type.Array(BudgetStateSchema, { description: "the budgets of the host, in the fleet; absent: it has none" }),
  ),
  classes: Type.Optional(
    Type.Array(ClassStateSchema, {
      description: "the classes of the host by name, in the fleet; absent: it has none",
    }),
  ),
  keys: Type.Array(KeyStateSchema, { description: "the busiest values of the host's keys, at most 50" }),
  slots: Type.Array(SlotStateSchema),
  sessions: Type.Array(SessionStateSchema, {
    description: "waiting sessions by position, as many as requested; `pending` counts all",
  }),
});

/** Each instance reports its counts with its beat: every second while sessions wait there, else every ten. */
const FleetStateSchema = Type.Object(
  {
    instances: Type.Integer({ minimum: 1, description: "number of live instances" }),
    waiting: Type.Integer({ minimum: 0, description: "sessions waiting at all instances" }),
    granted: Type.Integer({ minimum: 0, description: "slots granted since each instance started" }),
    rejected: Type.Integer({ minimum: 0, description: "requests that got no slot since each instance started" }),
  },
  { description: "sums over all live instances" },
);

/** The answer of `GET …/state`. */
export const StateSchema = Type.Object({
  at: Type.Number(),
  instance: Type.String(),
  configVersion: Type.String(),
  sessions: Type.recordOf(count, { description: "sessions of this instance by state" }),
  counts: Type.recordOf(count, { description: "counts of this instance since its start" }),
  fleet: Type.Optional(FleetStateSchema),
  unsent: Type.Integer({ minimum: 0, description: "inputs that the store does not have yet" }),
  total: Type.Integer({ minimum: 0, description: "number of all hosts" }),
  hosts: Type.Array(HostStateSchema),
});
