/** The work of the comparison: who asks for what, and under which limits. */
import type { Random } from "@slotkeeper/testkit/random";

export const LIMITS = { user: 1, tenant: 5, total: 20, tokensPerSecond: 1_000, burst: 1_000 } as const;

/** How long a holder that was killed keeps its slots, for every subject that has such a time. */
export const LEASE_MS = 3_000;

/** One request as the limiter sees it. The true cost is known when the work has ended. */
export interface Job {
  readonly user: string;
  readonly tenant: string;
  readonly estimate: number;
}

/**
 * Every tenant always has work, so each can have the same share of the tokens. They ask in different ways: half of them
 * with small requests, half with large ones, and one with four times as many users.
 */
export const TENANTS: readonly { readonly name: string; readonly users: number; readonly estimate: number }[] = [
  { name: "t0", users: 24, estimate: 25 },
  { name: "t1", users: 6, estimate: 25 },
  { name: "t2", users: 6, estimate: 25 },
  { name: "t3", users: 6, estimate: 100 },
  { name: "t4", users: 6, estimate: 100 },
  { name: "t5", users: 6, estimate: 100 },
];

/** The mean estimate if all tenants get the same share of the tokens. For limiters that count requests. */
export const MEAN_ESTIMATE =
  TENANTS.length / TENANTS.map(({ estimate }) => 1 / estimate).reduce((sum, part) => sum + part, 0);

/** One request of each user. Each process works through this list again and again, so users ask in all processes. */
export const JOBS: readonly Job[] = TENANTS.flatMap(({ name, users, estimate }) =>
  Array.from({ length: users }, (_, n) => ({ user: `${name}-u${n}`, tenant: name, estimate })),
);

/** Requests that fill every slot exactly: five users of each of four tenants. They cost next to nothing. */
export const FILLING: readonly Job[] = TENANTS.slice(0, LIMITS.total / LIMITS.tenant).flatMap(({ name }) =>
  Array.from({ length: LIMITS.tenant }, (_, n) => ({ user: `${name}-u${n}`, tenant: name, estimate: 1 })),
);

const HOLD_MS = 300;

/** What the work turns out to be: half to one and a half of what was expected. */
export function outcomeOf({ estimate }: Job, random: Random): { readonly cost: number; readonly holdMs: number } {
  const cost = Math.round(estimate * (0.5 + random.next()));
  return { cost, holdMs: HOLD_MS * (0.5 + random.next()) };
}
