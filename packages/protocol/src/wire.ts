import type { Static } from "typebox";
import type * as Answers from "./schemas/answer-schemas.ts";
import type { HistorySchema, InstancesSchema, LiveStateSchema } from "./schemas/live-schemas.ts";
import type * as Requests from "./schemas/request-schemas.ts";
import type { StateSchema } from "./schemas/state-schema.ts";

/** The messages of the wire, from their schemas. */

export type FirstCall = Static<typeof Requests.FirstCallSchema>;
export type PollCall = Static<typeof Requests.PollSchema>;
export type ReleaseCall = Static<typeof Requests.ReleaseSchema>;
export type RenewCall = Static<typeof Requests.RenewSchema>;
export type CancelCall = Static<typeof Requests.CancelSchema>;
export type ReportCall = Static<typeof Requests.ReportSchema>;
export type AcquireReply = Static<typeof Answers.AcquireAnswerSchema>;
export type RenewReply = Static<typeof Answers.RenewedSchema>;
export type CancelReply = Static<typeof Answers.CanceledSchema>;
export type Problem = Static<typeof Answers.ProblemSchema>;
export type ServiceState = Static<typeof StateSchema>;
export type LiveState = Static<typeof LiveStateSchema>;
export type ServiceHistory = Static<typeof HistorySchema>;
export type ServiceInstances = Static<typeof InstancesSchema>;
