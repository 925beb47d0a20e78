import type { OperatorContext } from "./context.ts";
import type { RouteTable } from "./dispatch.ts";
import { events, history, instances } from "./routes/live.ts";
import { breaker, limits, pause, revoke } from "./routes/operate.ts";
import { state } from "./routes/state.ts";

/** The routes of operators and of the dashboard. They run in any runtime. */
export const OPERATOR_ROUTES = {
  state,
  history,
  instances,
  events,
  limits,
  breaker,
  pause,
  revoke,
} satisfies RouteTable<OperatorContext>;
