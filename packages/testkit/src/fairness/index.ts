export { type FleetOutcome, type FleetRouting, runFleet } from "./fleet.ts";
export { type Claim, maxMin } from "./max-min.ts";
export { type Outcome, runScenario } from "./run-scenario.ts";
export { demandOf, type Group, type Scenario } from "./scenario.ts";
export { SCENARIOS } from "./scenarios.ts";
export type { SourceName } from "./slot-source.ts";
