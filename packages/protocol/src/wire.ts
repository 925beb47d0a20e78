import type { Static } from "typebox";
import type * as Answers from "./schemas/answer-schemas.ts";
import type { HistorySchema, InstancesSchema, LiveStateSchema } from "./schemas/live-schemas.ts";
import type * as Requests from "./schemas/request-schemas.ts";
import type { StateSchema } from "./schemas/state-schema.ts";

/** The messages of the wire, from their schemas. */

/** The first call to `acquire`. */
export type FirstCall = Static<typeof Requests.FirstCallSchema>;
/** Every later call to `acquire`, with the token of the last answer. */
export type PollCall = Static<typeof Requests.PollSchema>;
/** A call to `release`. */
export type ReleaseCall = Static<typeof Requests.ReleaseSchema>;
/** A call to `renew`. */
export type RenewCall = Static<typeof Requests.RenewSchema>;
/** A call to `cancel`. */
export type CancelCall = Static<typeof Requests.CancelSchema>;
/** A call to `report`: an upstream's answer to a request without a slot. */
export type ReportCall = Static<typeof Requests.ReportSchema>;
/** An answer to `acquire`, by `result`. */
export type AcquireReply = Static<typeof Answers.AcquireAnswerSchema>;
/** An answer to `release`. */
export type ReleaseReply = Static<typeof Answers.ReleasedSchema>;
/** An answer to `renew`. */
export type RenewReply = Static<typeof Answers.RenewedSchema>;
/** An answer to `cancel`. */
export type CancelReply = Static<typeof Answers.CanceledSchema>;
/** Why a request was refused, as `application/problem+json`. */
export type Problem = Static<typeof Answers.ProblemSchema>;
/** The state of a service: hosts, slots and queues. */
export type ServiceState = Static<typeof StateSchema>;
/** One event `state` of the live stream. */
export type LiveState = Static<typeof LiveStateSchema>;
/** Counts, gauges and waits of the last minutes. */
export type ServiceHistory = Static<typeof HistorySchema>;
/** The instances of the fleet. */
export type ServiceInstances = Static<typeof InstancesSchema>;
