export { type ConstrainedGroup, type ConstrainedScenario, runConstrained } from "./constrained.ts";
export { type FleetOutcome, type FleetRouting, runFleet } from "./fleet.ts";
export { type Claim, maxMin } from "./max-min.ts";
export { type Outcome, runScenario } from "./run-scenario.ts";
export { demandOf, type Group, type Scenario } from "./scenario.ts";
export { SCENARIOS } from "./scenarios.ts";
export type { SourceName } from "./slot-source.ts";
export { type Resource, type VectorClaim, vectorMaxMin } from "./vector-max-min.ts";
