import type { OperatorContext } from "./context.ts";
import type { RouteTable } from "./dispatch.ts";
import { events, history, instances } from "./routes/live.ts";
import { breaker, limits, revoke } from "./routes/operate.ts";
import { state } from "./routes/state.ts";

/** The routes of operators and of the dashboard. They run in any runtime. */
export const OPERATOR_ROUTES = {
  state,
  history,
  instances,
  events,
  limits,
  breaker,
  revoke,
} satisfies RouteTable<OperatorContext>;
