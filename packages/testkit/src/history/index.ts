/** `@slotkeeper/testkit/history`: an independent checker of what clients of the service saw. */
export { type Bounds, COUNT_NAMES, type CountName, type Counts } from "./counts.ts";
export { formatVerdict } from "./format-verdict.ts";
export { judgeHistory, judgeLines, RULES, type RuleVerdict, type Verdict } from "./judge-history.ts";
export type { CallLine, FactsLine, FairQueueFacts, FaultLine, HistoryLine, UseLine } from "./line.ts";
export { HistoryFormatError, HistoryReader } from "./read-history.ts";
export { HistoryRecorder } from "./recorder.ts";
export { recordingFetch } from "./recording-fetch.ts";
export type { RuleName, Violation } from "./rule.ts";
