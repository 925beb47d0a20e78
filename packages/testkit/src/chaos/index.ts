/** `@slotkeeper/testkit/chaos`: a real fleet under faults, judged by what its clients saw. */
export { ChaosClient, type ClientPlan } from "./chaos-client.ts";
export { FAULT_NAMES, FAULTS, type FaultName } from "./faults.ts";
export { formatReport } from "./format-report.ts";
export { type Delivery, History, type SessionRecord, type Use } from "./history.ts";
export { judgeRun, type RunFacts } from "./judge-run.ts";
export type { ChaosReport, FaultFigures } from "./report.ts";
export { type ChaosOptions, runChaos } from "./run-chaos.ts";
