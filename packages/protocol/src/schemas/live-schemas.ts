import { HostRowSchema } from "./state-schema.ts";
import * as Type from "./type.ts";

/** What the service reports about itself over time: history, live changes, and the live instances. */

const count = Type.Integer({ minimum: 0 });
const numbers = (description: string) => Type.Array(Type.Number(), { description });
const maybe = (description: string) => Type.Array(Type.Union([Type.Number(), Type.Null()]), { description });

/** The answer of `GET …/history`. */
export const HistorySchema = Type.Object(
  {
    at: Type.Number({ description: "the end of the last step" }),
    stepMs: Type.Integer({ minimum: 1 }),
    host: Type.Optional(Type.String({ description: "host of this history; absent: all hosts" })),
    isTracked: Type.Boolean({ description: "false: the service kept no history of this host" }),
    known: Type.Integer({
      minimum: 1,
      description: "the number of steps, from the end, that the service has seen; earlier ones are 0",
    }),
    granted: numbers("count in each step"),
    timeout: numbers("count in each step"),
    throttled: numbers("count in each step"),
    overloaded: numbers("count in each step"),
    canceled: numbers("count in each step"),
    released: numbers("count in each step"),
    inFlight: numbers("slots in use at the end of each step"),
    limit: numbers("slots at the end of each step"),
    waiters: numbers("sessions waiting at the end of each step, in the fleet"),
    waitP50Ms: maybe("wait of the sessions granted in each step; null: no grants"),
    waitP95Ms: maybe("wait of the sessions granted in each step; null: no grants"),
    waits: Type.Object({
      boundsMs: numbers("upper bounds; the last count is for all longer waits"),
      counts: numbers("number of granted sessions with such a wait, over the whole time"),
    }),
  },
  { description: "One number for each step in every list, the oldest first." },
);

/** The data of one event `state`. */
export const LiveStateSchema = Type.Object(
  {
    at: Type.Number(),
    instance: Type.String(),
    configVersion: Type.String(),
    sessions: Type.recordOf(count, { description: "sessions of this instance by state" }),
    counts: Type.recordOf(count, { description: "counts of this instance since its start" }),
    slots: Type.Object(
      { inFlight: count, limit: count, waiting: count },
      { description: "sums over all hosts of the fleet" },
    ),
    hosts: Type.Array(HostRowSchema, { description: "hosts that changed, with their present state" }),
    more: Type.Integer({ minimum: 0, description: "number of other hosts that changed; read them from `/state`" }),
  },
  { description: "The data of a `state` event." },
);

const InstanceSchema = Type.Object({
  instance: Type.String({ description: "its name in the fleet, new at every start" }),
  instanceId: Type.Optional(Type.String({ description: "`controller.instanceId`, if it has one" })),
  isThis: Type.Boolean({ description: "true for the instance that answers" }),
  seenAgoMs: Type.Number({ minimum: 0, description: "time since its last beat" }),
  address: Type.Optional(Type.String()),
  version: Type.Optional(Type.String()),
  configVersion: Type.Optional(Type.String()),
  configHash: Type.Optional(
    Type.String({ description: "hash of the limits in force; it differs between instances with different limits" }),
  ),
  upMs: Type.Optional(Type.Number({ description: "time since its start" })),
  heldPolls: Type.Optional(Type.Number()),
  sessions: Type.Optional(Type.Number()),
  granted: Type.Optional(Type.Number({ description: "slots granted since its start" })),
  rejected: Type.Optional(Type.Number({ description: "requests that got no slot since its start" })),
});

/** The answer of `GET …/instances`. */
export const InstancesSchema = Type.Object({
  at: Type.Number(),
  isFleet: Type.Boolean({ description: "false: only this process uses the store" }),
  hasDrift: Type.Boolean({ description: "true: the instances do not all have the same limits" }),
  instances: Type.Array(InstanceSchema),
});
