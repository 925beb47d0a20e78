import type { FairQueueConfig } from "@slotkeeper/protocol";
import type { Random } from "../random/random.ts";

type Limits = Pick<FairQueueConfig, "maxSlotPerHost" | "order">;
type Classes = NonNullable<FairQueueConfig["classes"]>;

const NAMES = ["batch", "chat", "default", "eval"];

/** The configuration with random classes for all hosts, or with none. */
export function withClasses(config: FairQueueConfig, random: Random): FairQueueConfig {
  const classes = randomClasses(config, random);
  const all = { ...config.hosts?.["*"], classes };
  return Object.keys(classes).length === 0 ? config : { ...config, hosts: { ...config.hosts, "*": all } };
}

/** The names of the classes that a configuration gives all hosts. */
export function classNames({ hosts }: FairQueueConfig): string[] {
  return Object.keys(hosts?.["*"]?.classes ?? {});
}

/** Their floors leave at least one slot, and an order by a budget has no floors. */
export function randomClasses({ maxSlotPerHost: slots = 1, order = "fifo" }: Limits, random: Random): Classes {
  let rest = order.startsWith("budget:") ? 0 : slots - 1;
  const names = NAMES.filter(() => random.chance(0.55)).slice(0, 3);
  const entries = names.map((name) => {
    const weight = random.pick([0.5, 1, 1, 2, 4]);
    const floor = random.chance(0.5) ? random.int(Math.min(1, rest), Math.min(2, rest)) : 0;
    const ceiling = random.chance(0.5) ? { ceiling: random.int(Math.max(1, floor), slots) } : {};
    rest -= floor;
    return [name, { weight, ...(floor > 0 ? { floor } : {}), ...ceiling }] as const;
  });
  return Object.fromEntries(entries);
}
