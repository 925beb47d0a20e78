/** `@slotkeeper/protocol/schemas`: the schemas themselves, and the documents made from them. */
export * from "./answer-schemas.ts";
export { configDocument } from "./config-document.ts";
export { ConfigSchema } from "./config-schema.ts";
export { FairQueueSectionSchema } from "./fair-queue-schema.ts";
export { HistorySchema, InstancesSchema, LiveStateSchema } from "./live-schemas.ts";
export { openApiDocument } from "./openapi.ts";
export { PATTERNS } from "./patterns.ts";
export {
  BreakerCallSchema,
  CancelSchema,
  FirstCallSchema,
  LiveLimitsSchema,
  PauseCallSchema,
  PollSchema,
  ReleaseSchema,
  RenewSchema,
  ReportSchema,
} from "./request-schemas.ts";
export { type Audience, ROUTE_PATHS, type RouteName, type RoutePath } from "./route-paths.ts";
export { ROUTES, type Route } from "./routes.ts";
export { StateSchema } from "./state-schema.ts";
