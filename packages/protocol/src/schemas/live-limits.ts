import type { TInteger } from "typebox";
import { LIMITS } from "../limits.ts";
import { HOST_LIMITS, LIVE_LIMITS, type LiveLimitKey } from "../settings/host-limits.ts";
import * as Type from "./type.ts";

/** The limits that operators may set at a running host, as they send them. */

type LiveCall = { [K in LiveLimitKey]: TInteger };

/** The body of an operator's call. Unknown keys are refused, because a misspelt key would remove a limit. */
export const LiveLimitsSchema = Type.section(
  Object.fromEntries(LIVE_LIMITS.map(({ key }) => [key, callOf(key)])) as LiveCall,
  {
    description: "All live limits of the host. A limit that is absent here returns to its configured value.",
  },
);

function callOf(key: LiveLimitKey) {
  const limit = HOST_LIMITS[key];
  const isOffAt0 = "isOffAt0" in limit;
  return Type.Integer({
    minimum: "min" in limit ? limit.min : 0,
    maximum: LIMITS.slots,
    description: isOffAt0 ? "0: no limit; absent: the configured value" : "absent: the configured value",
  });
}
