import { amountOf } from "./demand.ts";
import { DEFAULT_CLASS } from "./settings/class-settings.ts";
import type { ServiceState } from "./wire.ts";

type HostState = ServiceState["hosts"][number];
type SessionState = HostState["sessions"][number];
/** A budget of a host, as the state has it. */
export type BudgetState = NonNullable<HostState["budgets"]>[number];

/** A class of a host, as the state has it. */
export type ClassState = NonNullable<HostState["classes"]>[number];

/** Why a session waits, as sentences for the person on call. */
export interface WaitCause {
  /** What the session waits for. */
  readonly cause: string;
  /** When that ends, or what sets it. */
  readonly more: string;
}

/** Texts that are made safe, or counted down, for the place where they are shown. */
export interface ShownTexts {
  readonly bucket: string;
  /** How long an open breaker stays open. */
  readonly breakerLeft: string;
}

const ASLEEP: WaitCause = {
  cause: "Its client is not connected.",
  more: "No poll is open for this session. It keeps its place, but only a client with an open poll gets a slot.",
};

/**
 * Why a session of the state waits, as `slotkeeper who` and the dashboard show it.
 *
 * @example
 * ```ts
 * import { type ServiceState, waitCause } from "@slotkeeper/protocol";
 *
 * const { hosts } = (await (await fetch("http://127.0.0.1:8080/api/v0/state")).json()) as ServiceState;
 * for (const host of hosts) {
 *   const [first] = host.sessions;
 *   if (first) console.log(waitCause(first, host, { bucket: first.bucket, breakerLeft: "a while" }).cause);
 * }
 * ```
 */
export function waitCause(session: SessionState, host: HostState, shown: ShownTexts): WaitCause {
  if (!session.isAwake) return ASLEEP;
  const { slots, limits, limit = 0, inFlight } = host;
  const budget = host.budgets?.find(({ name }) => session.blockedBy === `budget:${name}`);
  if (budget !== undefined) return shortBudget(session, budget);
  if (session.blockedBy?.startsWith("key:") === true) return fullKey(session.blockedBy.slice("key:".length));
  switch (session.blockedBy) {
    case "host-limit":
      return {
        cause: `All slots of this host are in use: ${inFlight} of ${limit}.`,
        more: "It gets a slot when a holder releases one or a lease expires.",
      };
    case "ip-limit": {
      const own = slots.filter(({ bucket }) => bucket === session.bucket).length;
      return {
        cause: `Its bucket “${shown.bucket}” already has ${own} ${own === 1 ? "slot" : "slots"}; the limit per bucket is ${limits.maxSlotPerIp.value}.`,
        more: "It gets a slot when its own bucket releases one, even if other slots are free.",
      };
    }
    case "cooldown":
      return {
        cause: `Its bucket “${shown.bucket}” has just released a slot and has to wait.`,
        more: "The time is set by ipCooldownSeconds in the configuration.",
      };
    case "class":
      return fullClass(session, host);
    case "width":
      return {
        cause: `It needs ${session.width} slots, and ${Math.max(0, limit - inFlight)} are free.`,
        more: "It gets them when enough holders release their slots or their leases expire.",
      };
    case "behind-first":
      return {
        cause: "Another session is first, and waits for more slots or for a budget.",
        more: "No other session gets a slot until that session has its slots.",
      };
    case "waiter-pool":
      return {
        cause: "The waiter pool of this host is full.",
        more: "It keeps its arrival time, and joins the pool when a place becomes free. maxWaitersPerHost and maxWaitersPerIp set the size of the pool.",
      };
    case "breaker":
      return brokenHost(host, shown);
    case "paused":
      return {
        cause: "An operator has paused this host: it grants nothing new.",
        more: "Holders keep their slots. `slotkeeper resume` lets it go on.",
      };
    case "store":
      return { cause: "The store does not answer.", more: "Nothing is granted until it does." };
    case undefined:
    default:
      return { cause: "Nothing blocks it.", more: "It is granted in the next cycle of this host." };
  }
}

function shortBudget({ cost }: SessionState, budget: BudgetState): WaitCause {
  const { name, available } = budget;
  const refill = `The budget refills by ${refillWords(budget)}.`;
  if (available < 0)
    return {
      cause: `The budget “${name}” is ${unitsOf(-available)} in debt: requests used more than they were charged.`,
      more: `Nothing is granted until the debt is paid. ${refill}`,
    };
  return {
    cause: `It costs ${unitsOf(amountOf(cost, name) ?? budget.default)} of the budget “${name}”, and ${unitsOf(available)} are left.`,
    more: `${refill} No other session gets a slot until it has its own.`,
  };
}

const PER: { readonly [seconds: number]: string } = { 1: "second", 60: "minute", 3600: "hour", 86400: "day" };

/**
 * How a budget refills: `200,000 per minute`, `5 per 10 s`.
 *
 * @example
 * ```ts
 * import { refillWords } from "@slotkeeper/protocol";
 *
 * console.log(refillWords({ limit: 200_000, perSeconds: 60 })); // 200,000 per minute
 * ```
 */
export function refillWords({ limit, perSeconds }: Pick<BudgetState, "limit" | "perSeconds">): string {
  return `${unitsOf(limit)} per ${PER[perSeconds] ?? `${unitsOf(perSeconds)} s`}`;
}

/**
 * An amount of a budget: `41,200`, `0.25`.
 *
 * @example
 * ```ts
 * import { unitsOf } from "@slotkeeper/protocol";
 *
 * console.log(unitsOf(41_200.4)); // 41,200
 * ```
 */
export function unitsOf(amount: number): string {
  return amount.toLocaleString("en", { maximumFractionDigits: Math.abs(amount) < 10 ? 2 : 0 });
}

function fullKey(name: string): WaitCause {
  return {
    cause: `Its “${name}” is at a limit of its own: its slots are in use, or a budget has to refill.`,
    more: `Requests with the same “${name}” share that limit, and the oldest goes first. It is set by keys.${name} in the configuration.`,
  };
}

function fullClass({ class: name = DEFAULT_CLASS, width }: SessionState, { classes = [] }: HostState): WaitCause {
  const more = `It gets a slot when its class releases one, even if other slots are free. The limit is set by classes.${name}.ceiling in the configuration.`;
  const { inFlight = 0, ceiling } = classes.find((one) => one.name === name) ?? {};
  // The limits changed after the answer.
  if (ceiling === undefined) return { cause: `Its class “${name}” is at its limit.`, more };
  if (inFlight >= ceiling) {
    return { cause: `Its class “${name}” has all the slots that it may have: ${inFlight} of ${ceiling}.`, more };
  }
  if (inFlight + width > ceiling) {
    return {
      cause: `It needs ${width} slots, and its class “${name}” has ${inFlight} of ${ceiling} that it may have.`,
      more,
    };
  }
  return {
    cause: `Another session of its class “${name}” is first, and needs more slots than the class may have now.`,
    more: "No other session of the class gets a slot until that session has its slots.",
  };
}

function brokenHost(host: HostState, { breakerLeft }: ShownTexts): WaitCause {
  if (host.breaker === "open") {
    return {
      cause: `The breaker is open: ${breakerCause(host)}.`,
      more: `Single requests are let through in ${breakerLeft}.`,
    };
  }
  return {
    cause: "The breaker is testing the host.",
    more: "One trial request at a time is let through. After a success all requests pass again.",
  };
}

/** Why the breaker is open; empty if it is closed. */
export function breakerCause({ breakerCode }: Pick<HostState, "breakerCode">): string {
  if (breakerCode === undefined) return "";
  return breakerCode === 0 ? "an operator opened it" : `the host answered ${breakerCode} too often`;
}
