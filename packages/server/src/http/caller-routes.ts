import type { CallerContext } from "./context.ts";
import type { RouteTable } from "./dispatch.ts";
import { acquire } from "./routes/acquire.ts";
import { cancel, release, renew, report } from "./routes/slots.ts";

/** The routes of callers. They run in any runtime. */
export const CALLER_ROUTES = { acquire, release, renew, cancel, report } satisfies RouteTable<CallerContext>;
