import type { CallerContext, OperatorContext } from "./context.ts";
import type { RouteTable } from "./dispatch.ts";
import { acquire } from "./routes/acquire.ts";
import { breaker, limits, pause, revoke } from "./routes/operate.ts";
import { cancel, release, renew, report } from "./routes/slots.ts";
import { events, history, instances, state } from "./routes/state.ts";

/** The routes of callers. They run in any runtime. */
export const CALLER_ROUTES = { acquire, release, renew, cancel, report } satisfies RouteTable<CallerContext>;

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
