/**
 * The format of a history: JSON lines, in any order. All times are milliseconds of one clock, that of the clients.
 * Nothing in it comes from the records of the service.
 */
export type HistoryLine = FactsLine | FaultLine | CallLine | UseLine;

/** What is known about the service from outside. Rules that need an unknown fact are not judged. */
export interface FactsLine {
  readonly kind: "facts";
  /** When this came into force, at the earliest; the facts of earlier lines stay in force until `byAt`. */
  readonly at: number;
  /** When it was in force, at the latest. Default: `at`. */
  readonly byAt?: number;
  /** The name of the host that it is about. Default: all hosts. */
  readonly host?: string;
  /** The `fairQueue` section of the configuration. Keys that it does not contain have the documented defaults. */
  readonly fairQueue?: FairQueueFacts;
  /** The number of instances that serve the clients. */
  readonly instances?: number;
  /** Whether the hosts had no use and no sessions before the history began. */
  readonly isFresh?: boolean;
  /** How long a message between client and service takes at most, unless it is lost. */
  readonly transitMs?: number;
  /** Within this time a free slot must reach a waiter, and an acknowledged release or cancellation has taken effect. */
  readonly promptMs?: number;
}

/** The keys of `fairQueue` that the rules use, as documented in docs/reference/config.md. */
export interface FairQueueFacts extends LimitFacts {
  /** Overrides of hosts by their exact names. Patterns are not known here. */
  readonly hosts?: { readonly [name: string]: LimitFacts };
}

interface LimitFacts {
  readonly maxSlotPerHost?: number;
  readonly maxSlotPerIp?: number;
  readonly maxWaitersPerHost?: number;
  readonly maxWaitersPerIp?: number;
  readonly maxWaitMs?: number;
  readonly pollWindowMs?: number;
  readonly collectMs?: number;
  readonly sessionIdleSeconds?: number;
  readonly zombieTimeoutSeconds?: number;
  readonly ipCooldownSeconds?: number;
  readonly minSlotHoldMs?: number;
  readonly smoothReleaseIntervalMs?: number;
  readonly order?: string;
  readonly budgets?: { readonly [name: string]: BudgetFacts };
  readonly keys?: { readonly [name: string]: KeyFacts };
  readonly classes?: { readonly [name: string]: ClassFacts };
  readonly weights?: Readonly<Record<string, number>>;
  readonly weightedScheduler?: { readonly enabled?: boolean };
  readonly breaker?: BreakerFacts;
}

export interface BudgetFacts {
  readonly limit: number;
  readonly perSeconds: number;
  readonly burst?: number;
  readonly default?: number;
  readonly shadow?: boolean;
}

export interface KeyFacts extends ValueFacts {
  readonly required?: boolean;
  /** Its slots are not enforced, nor its budgets that do not say so. */
  readonly shadow?: boolean;
  /** Values with limits of their own. */
  readonly for?: { readonly [value: string]: ValueFacts };
}

interface ValueFacts {
  readonly slots?: number;
  readonly budgets?: { readonly [name: string]: BudgetFacts };
}

/** A class of requests. Those that name none are of the class `default`. */
interface ClassFacts {
  readonly weight?: number;
  readonly floor?: number;
  readonly ceiling?: number;
}

export interface BreakerFacts {
  readonly protectHttpCodes?: readonly number[];
  readonly errorRatioPercent?: number;
  readonly minSamples?: number;
  readonly fastErrorRatioPercent?: number;
  readonly fastMinSamples?: number;
  readonly consecutiveErrors?: number;
  readonly openSeconds?: number;
  readonly halfOpenProbes?: number;
}

/** Something that happened to the service, and that excuses answers (docs/explanation/failure-model.md). */
export interface FaultLine {
  readonly kind: "fault";
  /**
   * `delay`: a part is dead, paused, unreachable or slow: nothing is promised about how long anything takes.
   * `lost-commits`: the store lost its last commits. `store-clock`: the store's clock jumped. `instance-clock`: the
   * clock of an instance jumped ahead, which may end its sessions and leases early for its clients. All of them are a delay, too.
   */
  readonly fault: FaultKind;
  readonly from: number;
  /** When the part worked again; without it, until the end of the history. */
  readonly until?: number;
  readonly note?: string;
}

export const FAULT_KINDS = ["delay", "lost-commits", "store-clock", "instance-clock"] as const;

export type FaultKind = (typeof FAULT_KINDS)[number];

/** One call and its answer, with the bodies as they are on the wire (docs/reference/http.md). */
export interface CallLine {
  readonly kind: "call";
  /** Which client sent it, for the report. */
  readonly client?: string;
  readonly call: CallName;
  readonly sentAt: number;
  /** When the answer had arrived. Absent: no answer. */
  readonly answeredAt?: number;
  /** If there was no answer: when the client stopped waiting for it. Absent: at the end of the history. */
  readonly gaveUpAt?: number;
  /** The body of the request. For `limits`, `breaker` and `revoke` also `host` or `slot`, from the path. */
  readonly ask: object;
  /** The HTTP status of the answer. */
  readonly status?: number;
  /** The body of the answer. */
  readonly answer?: object;
}

export const CALL_NAMES = ["acquire", "release", "renew", "cancel", "report", "limits", "breaker", "revoke"] as const;

export type CallName = (typeof CALL_NAMES)[number];

/** When a client used a slot, as an upstream would see it. */
export interface UseLine {
  readonly kind: "use";
  readonly slotToken: string;
  readonly from: number;
  /** Absent: still in use at the end of the history. */
  readonly until?: number;
}
