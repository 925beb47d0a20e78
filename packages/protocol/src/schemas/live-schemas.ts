import { Type } from "typebox";
import { HostRowSchema } from "./state-schema.ts";

/** What the service reports about itself over time: history, live changes, and who is alive. */

const count = Type.Integer({ minimum: 0 });
const numbers = (description: string) => Type.Array(Type.Number(), { description });
const maybe = (description: string) => Type.Array(Type.Union([Type.Number(), Type.Null()]), { description });

/** The answer of `GET …/history`. */
export const HistorySchema = Type.Object(
  {
    at: Type.Number({ description: "the end of the last step" }),
    stepMs: Type.Integer({ minimum: 1 }),
    host: Type.Optional(Type.String({ description: "whose history it is; absent: of all hosts" })),
    isTracked: Type.Boolean({ description: "false: this host is not among those whose history is kept" }),
    granted: numbers("in each step"),
    timeout: numbers("in each step"),
    throttled: numbers("in each step"),
    overloaded: numbers("in each step"),
    canceled: numbers("in each step"),
    released: numbers("in each step"),
    inFlight: numbers("slots in use at the end of each step"),
    limit: numbers("slots at the end of each step"),
    waiters: numbers("sessions waiting at the end of each step, in the fleet"),
    waitP50Ms: maybe("of those granted in each step; null: no grants"),
    waitP95Ms: maybe("of those granted in each step; null: no grants"),
    waits: Type.Object({
      boundsMs: numbers("upper bounds; one more count follows for all above"),
      counts: numbers("waits of those granted, over the whole time"),
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
    sessions: Type.Record(Type.String(), count, { description: "by state, at this instance" }),
    counts: Type.Record(Type.String(), count, { description: "since the start, at this instance" }),
    slots: Type.Object(
      { inFlight: count, limit: count, waiting: count },
      { description: "of all hosts, in the fleet" },
    ),
    hosts: Type.Array(HostRowSchema, { description: "those that changed, as they are now" }),
    more: Type.Integer({ minimum: 0, description: "hosts that changed too, and did not fit: ask for the state" }),
  },
  { description: "The data of a `state` event." },
);

const InstanceSchema = Type.Object({
  instance: Type.String({ description: "its name in the fleet, new with every start" }),
  instanceId: Type.Optional(Type.String({ description: "`controller.instanceId`, where it has one" })),
  isThis: Type.Boolean({ description: "the one that answers" }),
  seenAgoMs: Type.Number({ minimum: 0, description: "since it last said that it lives" }),
  address: Type.Optional(Type.String()),
  version: Type.Optional(Type.String()),
  configVersion: Type.Optional(Type.String()),
  configHash: Type.Optional(Type.String({ description: "of the limits in force: differs where instances drift" })),
  upMs: Type.Optional(Type.Number({ description: "since its start" })),
  heldPolls: Type.Optional(Type.Number()),
  sessions: Type.Optional(Type.Number()),
  granted: Type.Optional(Type.Number({ description: "slots, since its start" })),
  rejected: Type.Optional(Type.Number({ description: "callers that got no slot, since its start" })),
});

/** The answer of `GET …/instances`. */
export const InstancesSchema = Type.Object({
  at: Type.Number(),
  isFleet: Type.Boolean({ description: "false: the store belongs to this process alone" }),
  hasDrift: Type.Boolean({ description: "not all run with the same limits" }),
  instances: Type.Array(InstanceSchema),
});
