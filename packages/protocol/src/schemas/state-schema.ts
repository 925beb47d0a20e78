import { Type } from "typebox";

/** The state of one instance and its store, for the person on call. No token is in it. */

const count = Type.Integer({ minimum: 0 });

const BucketStateSchema = Type.Object({
  bucket: Type.String(),
  weight: Type.Number(),
  inFlight: count,
  waiting: Type.Integer({ minimum: 0, description: "places in the store's pool" }),
  usedMs: Type.Number({ description: "slot time used" }),
});

const SlotStateSchema = Type.Object({
  slot: Type.Integer({ description: "its fence: what `DELETE /slots/{id}` takes" }),
  session: Type.String(),
  bucket: Type.String(),
  endsInMs: Type.Number(),
  isReleased: Type.Boolean({ description: "given back, and running out the shortest hold or the spacing" }),
  isProbe: Type.Boolean({ description: "the trial request of a half-open breaker" }),
});

const SessionStateSchema = Type.Object({
  session: Type.String(),
  bucket: Type.String(),
  place: Type.String(),
  arrivedAt: Type.Number(),
  polls: Type.Integer({ minimum: 0, description: "held open for it" }),
});

const HostStateSchema = Type.Object({
  host: Type.String({ description: "its key" }),
  hostname: Type.Optional(Type.String()),
  limit: Type.Optional(Type.Integer({ description: "slots; absent where only this instance knows the host" })),
  inFlight: count,
  pending: Type.Integer({ minimum: 0, description: "sessions waiting here" }),
  avgWaitMs: Type.Number(),
  breaker: Type.String(),
  buckets: Type.Array(BucketStateSchema),
  slots: Type.Array(SlotStateSchema),
  sessions: Type.Array(SessionStateSchema, { description: "at most 200; `pending` counts all" }),
});

export const StateSchema = Type.Object({
  at: Type.Number(),
  instance: Type.String(),
  sessions: Type.Record(Type.String(), count, { description: "by state" }),
  counts: Type.Record(Type.String(), count, { description: "since the start" }),
  unsent: Type.Integer({ minimum: 0, description: "calls the store has not heard yet" }),
  total: Type.Integer({ minimum: 0, description: "hosts in all" }),
  hosts: Type.Array(HostStateSchema),
});
