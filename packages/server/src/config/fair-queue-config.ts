import type { FairQueueConfig, ServiceConfig } from "@slotkeeper/protocol";
import { FairQueueSectionSchema } from "@slotkeeper/protocol/schemas";
import { layerChecker } from "./config-problems.ts";
import { withoutZeros } from "./default-zeros.ts";
import { ConfigError } from "./errors.ts";
import { type Tree, withoutAbsent } from "./layers.ts";
import { hostProblems, isJudgeable, queueProblems } from "./queue-rules.ts";

const SCHEMA = { type: "object", properties: { fairQueue: FairQueueSectionSchema }, additionalProperties: false };
const checkLayer = layerChecker(SCHEMA);

/**
 * The `fairQueue` part of a configuration alone, checked by the same schema and rules. Throws a `ConfigError` with all
 * problems.
 */
export function checkedFairQueue(fairQueue: Tree): FairQueueConfig {
  const { tree } = withoutZeros(withoutAbsent({ fairQueue }), SCHEMA);
  const { problems, badFields, sound } = checkLayer({ origin: "code", tree });
  const config = sound.tree as ServiceConfig;
  const crossed = [...queueProblems(config), ...hostProblems(config)].filter((one) => isJudgeable(one, badFields));
  const all = [...problems, ...crossed.map(({ message }) => message)];
  if (all.length > 0) throw new ConfigError(all);
  const { rpc: _names, ...engine } = config.fairQueue ?? {};
  return engine;
}
