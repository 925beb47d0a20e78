import { type TInteger, type TObject, type TOptional, type TString, Type } from "typebox";
import { LIMITS } from "../limits.ts";
import { HOST_LIMITS, LIVE_LIMITS, type LiveLimitKey } from "../settings/host-limits.ts";

/** The limits that operators may set at a running host: as they send them, and as the state shows them. */

type LiveCall = { [K in LiveLimitKey]: TOptional<TInteger> };
type LiveState = { [K in LiveLimitKey]: TObject<{ value: TInteger; origin: TString }> };

/** Operators' calls. Here an unknown key is refused: a typing error must not take a limit away. */
export const LiveLimitsSchema = Type.Object(
  Object.fromEntries(LIVE_LIMITS.map(({ key }) => [key, Type.Optional(callOf(key))])) as LiveCall,
  {
    additionalProperties: false,
    description: "All live limits of the host: what is not named is as configured again.",
  },
);

export const HostLimitsStateSchema = Type.Object(
  Object.fromEntries(LIVE_LIMITS.map(({ key }) => [key, stateOf(key)])) as LiveState,
);

function callOf(key: LiveLimitKey) {
  const limit = HOST_LIMITS[key];
  const isOffAt0 = "isOffAt0" in limit;
  return Type.Integer({
    minimum: "min" in limit ? limit.min : 0,
    maximum: LIMITS.slots,
    description: isOffAt0 ? "0: no limit; absent: as configured" : "absent: as configured",
  });
}

function stateOf(key: LiveLimitKey) {
  const limit = HOST_LIMITS[key];
  return Type.Object({
    value: Type.Integer({
      description: `${limit.about}; 0: ${"isOffAt0" in limit ? "no limit" : "a semaphore without users"}`,
    }),
    origin: Type.String({
      description:
        "`live`: an operator set it; `semaphore`: its users did; else where the configuration has it from: `default`, `file config.json`, `controller`, `environment`, `flag`",
    }),
  });
}
