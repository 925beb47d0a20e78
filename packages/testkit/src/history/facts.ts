import type { Call } from "./call.ts";
import { hostKey, isDone } from "./call.ts";
import type { BreakerFacts, BudgetFacts, FactsLine, FairQueueFacts } from "./line.ts";
import type { Lines } from "./read-history.ts";

/** The documented defaults (docs/reference/config.md). A limit of 0 or less is none. */
const DEFAULTS = {
  maxSlotPerHost: 5,
  maxSlotPerIp: 1,
  maxWaitersPerHost: 50,
  maxWaitersPerIp: 0,
  maxWaitMs: 20_000,
  pollWindowMs: 6_000,
  collectMs: 1_000,
  sessionIdleSeconds: 90,
  zombieTimeoutSeconds: 30,
  ipCooldownSeconds: 0,
  minSlotHoldMs: 0,
  order: "slot-seconds",
  weights: {} as Readonly<Record<string, number>>,
} as const;

const BREAKER = {
  protectHttpCodes: [429, 500, 502, 503, 504] as readonly number[],
  errorRatioPercent: 20,
  minSamples: 8,
  fastErrorRatioPercent: 50,
  fastMinSamples: 4,
  consecutiveErrors: 4,
  openSeconds: 60,
  halfOpenProbes: 1,
} satisfies Required<BreakerFacts>;

export type Config = typeof DEFAULTS extends infer D
  ? { readonly [K in keyof D]: D[K] extends number ? number : D[K] extends string ? string : D[K] } & {
      readonly spacingMs: number;
      readonly openSeconds: number;
      readonly halfOpenProbes: number;
      readonly breaker: Required<BreakerFacts>;
      readonly hasSpacing: boolean;
      readonly isWeighted: boolean;
      readonly hasBudgets: boolean;
      readonly budgets: { readonly [name: string]: BudgetFacts };
      readonly keys: NonNullable<FairQueueFacts["keys"]>;
      readonly hasKeys: boolean;
      readonly classes: NonNullable<FairQueueFacts["classes"]>;
      readonly hasClasses: boolean;
    }
  : never;

type NumberKey = {
  [K in keyof Config]: Config[K] extends number ? K : never;
}[keyof Config];

interface Segment {
  readonly config: Config;
  readonly from: number;
  until: number;
}

/** What is known about one host, and when. */
export class HostFacts {
  readonly #segments: readonly Segment[];
  readonly instances: number | undefined;
  readonly isFresh: boolean;
  readonly transitMs: number | undefined;
  readonly promptMs: number | undefined;

  constructor(segments: readonly Segment[], lines: readonly FactsLine[]) {
    this.#segments = segments;
    const last = <K extends keyof FactsLine>(key: K) => lines.findLast((line) => line[key] !== undefined)?.[key];
    this.instances = last("instances");
    this.isFresh = last("isFresh") ?? false;
    this.transitMs = last("transitMs");
    this.promptMs = last("promptMs");
  }

  /** The configurations that may have been in force at some time of the span. Empty: unknown. */
  during(from: number, to: number): readonly Config[] {
    return this.#segments.flatMap((segment) => (segment.from <= to && segment.until >= from ? [segment.config] : []));
  }

  /** The largest of these values in the span; a limit of 0 or less is `Infinity`. `undefined`: unknown. */
  most(key: NumberKey, from: number, to: number): number | undefined {
    return this.#extreme(key, from, to, Math.max);
  }

  least(key: NumberKey, from: number, to: number): number | undefined {
    return this.#extreme(key, from, to, Math.min);
  }

  /** Whether requests may have waited for keys at some time. */
  get hadKeys(): boolean {
    return this.#segments.some(({ config }) => config.hasKeys);
  }

  /** The most slots of a class that may have been allowed in the span; `Infinity` if that is unknown. */
  mostOfClass(name: string, from: number, to: number): number {
    const ceilings = this.#ceilings(name, from, to);
    return ceilings.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...ceilings);
  }

  leastOfClass(name: string, from: number, to: number): number {
    return Math.min(...this.#ceilings(name, from, to));
  }

  #ceilings(name: string, from: number, to: number): number[] {
    return this.during(from, to).map(({ classes }) => classes[name]?.ceiling ?? Number.POSITIVE_INFINITY);
  }

  /** The only configuration, if it never changed. */
  get unchanged(): Config | undefined {
    return this.#segments.length === 1 ? this.#segments[0]?.config : undefined;
  }

  #extreme(key: NumberKey, from: number, to: number, choose: (a: number, b: number) => number): number | undefined {
    let extreme: number | undefined;
    for (const { config, from: begins, until } of this.#segments) {
      if (begins > to || until < from) continue;
      const value = LIMITS.has(key) && config[key] <= 0 ? Number.POSITIVE_INFINITY : config[key];
      extreme = extreme === undefined ? value : choose(extreme, value);
    }
    return extreme;
  }
}

const LIMITS = new Set<NumberKey>(["maxSlotPerHost", "maxSlotPerIp", "maxWaitersPerHost", "maxWaitersPerIp"]);

/** The facts of all hosts, from the lines of the kind `facts` and from the operators' calls that set limits. */
export class Facts {
  readonly #lines: Lines["facts"];
  readonly #limits: readonly Call[];
  readonly #hosts = new Map<string, HostFacts>();

  constructor({ facts, calls }: Lines) {
    this.#lines = facts.toSorted((a, b) => a.at - b.at);
    this.#limits = calls.filter(({ name }) => name === "limits");
  }

  of(host: string): HostFacts {
    let facts = this.#hosts.get(host);
    if (facts === undefined) {
      const lines = this.#lines.filter((line) => line.host === undefined || hostKey(line.host) === host);
      facts = new HostFacts(this.#segmentsOf(host, lines), lines);
      this.#hosts.set(host, facts);
    }
    return facts;
  }

  #segmentsOf(host: string, lines: readonly FactsLine[]): Segment[] {
    const promptMs = lines.findLast((line) => line.promptMs !== undefined)?.promptMs ?? 0;
    const lived = this.#limits.filter((call) => call.host === host && (isDone(call) || call.httpStatus === undefined));
    const changes = [
      ...lines.filter(({ fairQueue }) => fairQueue).map((line) => ({ ...line, byAt: line.byAt ?? line.at })),
      ...lived.map((call) => ({ at: call.sentAt, byAt: call.answeredAt + promptMs, live: call.set })),
    ].sort((a, b) => a.at - b.at);
    const segments: Segment[] = [];
    let [all, own, live]: FairQueueFacts[] = [{}, {}, {}];
    let open: Segment[] = [];
    for (const change of changes) {
      if ("live" in change) live = change.live;
      else if (change.host === undefined) all = forHost(host, change.fairQueue ?? {});
      else own = change.fairQueue ?? {};
      for (const segment of open) segment.until = Math.min(segment.until, change.byAt);
      const segment = {
        config: configOf({ ...all, ...own, ...live }),
        from: change.at,
        until: Number.POSITIVE_INFINITY,
      };
      // What was in force before may still be, if it is not known when the change took effect.
      open = [...open.filter(({ until }) => until === Number.POSITIVE_INFINITY), segment];
      segments.push(segment);
    }
    return segments;
  }
}

/** The values of a configuration for one host. */
function forHost(host: string, { hosts = {}, ...all }: FairQueueFacts): FairQueueFacts {
  const own = Object.entries(hosts).find(([name]) => hostKey(name) === host);
  return { ...all, ...own?.[1] };
}

function configOf(given: FairQueueFacts): Config {
  const { minSlotHoldMs = 0, maxSlotPerHost = DEFAULTS.maxSlotPerHost } = given;
  const { smoothReleaseIntervalMs = maxSlotPerHost > 0 ? minSlotHoldMs / maxSlotPerHost : 0 } = given;
  const breaker = { ...BREAKER, ...given.breaker };
  return {
    ...DEFAULTS,
    ...given,
    breaker,
    openSeconds: breaker.openSeconds,
    halfOpenProbes: breaker.halfOpenProbes,
    spacingMs: Math.max(0, smoothReleaseIntervalMs),
    hasSpacing: minSlotHoldMs > 0 || smoothReleaseIntervalMs > 0,
    isWeighted: given.weightedScheduler?.enabled ?? false,
    hasBudgets: given.budgets !== undefined,
    budgets: given.budgets ?? {},
    keys: given.keys ?? {},
    hasKeys: given.keys !== undefined,
    classes: given.classes ?? {},
    hasClasses: Object.keys(given.classes ?? {}).length > 0,
  };
}
