/** `@slotkeeper/testkit/soak`: a long load with small faults, and a verdict about what grew. */
export { judge, type Sample, type SoakVerdict } from "./judge.ts";
export { runSoak, type SoakOptions, type SoakReport } from "./run-soak.ts";
