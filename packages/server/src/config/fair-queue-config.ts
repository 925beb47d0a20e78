import {
  BREAKER_LIMITS,
  CLEANUP_SETTINGS,
  type FairQueueConfig,
  HOST_LIMITS,
  QUEUE_SETTINGS,
  SCHEDULER_SETTINGS,
} from "@slotkeeper/protocol";
import { resolveOptions } from "@slotkeeper/queue";
import { nearMatch } from "../words/near-match.ts";
import { ConfigError } from "./errors.ts";
import { hostProblems, isJudgeable, queueProblems } from "./queue-rules.ts";

const SECTIONS = { cleanup: CLEANUP_SETTINGS, weightedScheduler: SCHEDULER_SETTINGS, breaker: BREAKER_LIMITS };
const KEYS = [
  SECTIONS,
  QUEUE_SETTINGS,
  HOST_LIMITS,
  ...Object.values(SECTIONS),
  { budgets: 0, classes: 0, hosts: 0, weights: 0 },
];

/**
 * Checks a `fairQueue` that is written in code: by the rules of the engine, and for combinations that cannot work. What
 * `config.json` accepts from the original service, such as zeros for defaults, is refused. Throws a `ConfigError` with all
 * problems.
 */
export function checkFairQueue(fairQueue: FairQueueConfig): void {
  const problems = engineProblems(fairQueue);
  const isShaped = !problems.some((problem) => problem.includes("to be an object"));
  const crossed = isShaped ? [...queueProblems({ fairQueue }), ...hostProblems({ fairQueue })] : [];
  const bad = problems.map((problem) => /`(.*?)`/.exec(problem)?.[1] ?? "");
  const all = [
    ...problems.map(withSuggestion),
    ...crossed.filter((one) => isJudgeable(one, bad)).map(({ message }) => message),
  ];
  if (all.length > 0) throw new ConfigError(all);
}

function engineProblems(fairQueue: FairQueueConfig): string[] {
  try {
    resolveOptions(fairQueue);
    return [];
  } catch (error) {
    return (error as Error).message.split("\n");
  }
}

function withSuggestion(problem: string): string {
  const [, key] = /^Unknown key `.*?(\w+)`$/.exec(problem) ?? [];
  const near = key === undefined ? undefined : nearMatch(key, KEYS.flatMap(Object.keys));
  return near === undefined ? problem : `${problem}: did you mean \`${near}\`?`;
}
