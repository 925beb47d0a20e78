export { type JobKind, JobLog } from "./jobs.ts";
export { type KillReport, killExecs, killHolders, killKeepers } from "./kills.ts";
export { killGroup, Machine, type Started, type Wrapper } from "./machine.ts";
