import type { FairQueueConfig } from "@slotkeeper/protocol";

/** What a request asks for beside its slot, and what its release reports. */
export interface Demand {
  readonly ask: {
    readonly width: number;
    readonly cost: { readonly tokens: number };
    readonly keys: { readonly [name: string]: string };
    readonly class?: string;
  };
  readonly used: { readonly tokens: number };
}

export const CONSTRAINED_HOST = "constrained.example";

/** Less than what its clients together would use: requests wait for keys, for the ceiling, for budgets and for slots. */
export const CONSTRAINTS = {
  maxSlotPerHost: 6,
  maxSlotPerIp: 4,
  budgets: { tokens: { limit: 24, perSeconds: 1 } },
  keys: {
    user: { slots: 2 },
    tenant: { slots: 3, budgets: { tokens: { limit: 15, perSeconds: 1 } }, for: { acme: { slots: 4 } } },
  },
  classes: { chat: { weight: 3, floor: 2 }, batch: { weight: 1, ceiling: 3 } },
} satisfies FairQueueConfig;

const CLASSES = [{ class: "chat" }, { class: "batch" }, {}] as const;
const TENANTS = ["acme", "umbrella", "initech"] as const;
const MOST_TOKENS = 8;

/** A demand that the host can always meet. Users belong to one tenant each, and their number is bounded. `random` is at least 0 and below 1. */
export function demandOf(random: () => number): Demand {
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
  const upTo = (most: number) => Math.floor(random() * (most + 1));
  const tenant = pick(TENANTS);
  const user = `${tenant}-${upTo(2)}`;
  const ask = { width: 1 + upTo(1), cost: { tokens: upTo(MOST_TOKENS) }, keys: { user, tenant }, ...pick(CLASSES) };
  return { ask, used: { tokens: upTo(MOST_TOKENS + 2) } };
}
