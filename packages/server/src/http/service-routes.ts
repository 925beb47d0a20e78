import type { RouteName } from "@slotkeeper/protocol/schemas";
import { CALLER_ROUTES } from "./caller-routes.ts";
import type { ServiceContext } from "./context.ts";
import { asset, home } from "./dashboard/dashboard-routes.ts";
import { type Handler, Router } from "./dispatch.ts";
import { OPERATOR_ROUTES } from "./operator-routes.ts";
import { flush, health, refresh } from "./routes/internal.ts";
import { livez, metrics, openapi, readyz } from "./routes/root.ts";

/** All routes of the contract: those of callers and operators, and those that need this process. */
const SERVICE_ROUTES = {
  ...CALLER_ROUTES,
  ...OPERATOR_ROUTES,
  health,
  refresh,
  flush,
  metrics,
  livez,
  readyz,
  openapi,
  home,
  asset,
} satisfies Record<RouteName, Handler<ServiceContext>>;

export const SERVICE_ROUTER = new Router<ServiceContext>(SERVICE_ROUTES);
