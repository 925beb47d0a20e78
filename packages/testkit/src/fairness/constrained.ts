import type { FairQueueConfig } from "@slotkeeper/protocol";
import { FairQueue, MemoryStore } from "@slotkeeper/queue";
import { VirtualClock } from "../simulator/virtual-clock.ts";
import { type Resource, vectorMaxMin } from "./vector-max-min.ts";

/** A host with budgets and keys, and buckets that always have waiters. */
export interface ConstrainedScenario {
  readonly name: string;
  readonly config: Pick<FairQueueConfig, "budgets" | "keys" | "order"> & { readonly maxSlotPerHost: number };
  readonly groups: readonly ConstrainedGroup[];
  readonly durationMs: number;
  /** The largest relative error; 0.01 if absent. More where a bucket comes and goes, as `docs/explanation/fairness.md` explains. */
  readonly tolerance?: number;
}

/** Clients of one bucket. Each asks again as soon as it has released its slot. */
export interface ConstrainedGroup {
  readonly name: string;
  readonly weight?: number;
  readonly clients: number;
  readonly holdMs: number;
  /** What each request costs of the budget `tokens`. */
  readonly tokens?: number;
  readonly tenant?: string;
}

interface Share {
  readonly group: string;
  /** In slots, on average. */
  readonly got: number;
  readonly fair: number;
}

/** Runs the engine in virtual time and compares the slots that each bucket held with its max-min share. */
export async function runConstrained(scenario: ConstrainedScenario): Promise<readonly Share[]> {
  const clock = new VirtualClock();
  const { config, groups, durationMs } = scenario;
  const held = new Map<string, number>();
  let ids = 0;
  const newId = () => `id-${ids++}`;
  const weights = Object.fromEntries(groups.map(({ name, weight = 1 }) => [name, weight]));
  const queue = new FairQueue({
    store: new MemoryStore({ clock }),
    clock,
    newSessionId: newId,
    newSecret: newId,
    instance: "fair",
    config: { ...UNMEASURED, ...config, hosts: { h: { weights } } },
  });
  const run = { isClosed: false };
  const live = async ({ name, holdMs, tokens, tenant }: ConstrainedGroup) => {
    const cost = tokens === undefined ? undefined : { tokens };
    const keys = tenant === undefined ? undefined : { tenant };
    while (!run.isClosed) {
      const answer = await queue.begin({ host: "h", hostname: "h", bucket: name, waitMs: 1e9, cost, keys });
      if (run.isClosed) return;
      if (answer.result !== "granted") throw new Error(`Expected a slot, got ${JSON.stringify(answer)}`);
      await new Promise<void>((resolve) => void clock.setTimer(resolve, holdMs));
      held.set(name, (held.get(name) ?? 0) + holdMs);
      queue.release({ slotToken: answer.slotToken });
    }
  };
  for (const group of groups) for (let client = 0; client < group.clients; client++) void live(group);
  await clock.run(durationMs);
  run.isClosed = true;
  queue.close();
  const fair = fairShares(scenario);
  return groups.map(({ name }, at) => ({ group: name, got: (held.get(name) ?? 0) / durationMs, fair: fair[at] ?? 0 }));
}

/** Limits that are not measured are off. */
const UNMEASURED = {
  maxSlotPerIp: 0,
  maxWaitersPerHost: 0,
  globalMaxWaiters: -1,
  maxWaitMs: 1e9,
  pollWindowMs: 1e9,
  zombieTimeoutSeconds: 1e6,
  maxHoldSeconds: 1e6,
} as const;

/** In slots. In the order by the budget, tokens grow at the weights; otherwise slots do. */
function fairShares({ config, groups }: ConstrainedScenario): number[] {
  const isByBudget = config.order === "budget:tokens";
  const claims = groups.map((group) => ({
    rate: (group.weight ?? 1) / (isByBudget ? tokensPerSecond(group) : 1),
    demand: group.clients,
  }));
  return vectorMaxMin(claims, resourcesOf({ config, groups }));
}

function resourcesOf({ config, groups }: Pick<ConstrainedScenario, "config" | "groups">): Resource[] {
  const { maxSlotPerHost, budgets, keys } = config;
  const needs = (of: readonly ConstrainedGroup[], need: (group: ConstrainedGroup) => number) =>
    groups.map((group) => (of.includes(group) ? need(group) : 0));
  const tokens = (budget: { readonly limit: number; readonly perSeconds: number } | undefined, of = groups) =>
    budget === undefined ? [] : [{ capacity: budget.limit / budget.perSeconds, needs: needs(of, tokensPerSecond) }];
  const { slots, budgets: own, for: single = {} } = keys?.["tenant"] ?? {};
  const tenants = [...new Set(groups.flatMap(({ tenant }) => tenant ?? []))];
  const ofKeys = tenants.flatMap((tenant) => {
    const of = groups.filter((group) => group.tenant === tenant);
    const most = single[tenant]?.slots ?? slots;
    const bySlots = most === undefined ? [] : [{ capacity: most, needs: needs(of, () => 1) }];
    return [...bySlots, ...tokens(single[tenant]?.budgets?.["tokens"] ?? own?.["tokens"], of)];
  });
  return [{ capacity: maxSlotPerHost, needs: groups.map(() => 1) }, ...tokens(budgets?.["tokens"]), ...ofKeys];
}

/** What one slot of the bucket uses up. */
function tokensPerSecond({ tokens = 1, holdMs }: ConstrainedGroup): number {
  return (tokens * 1_000) / holdMs;
}
