/**
 * Samples the memory of this process and reports the pressure.
 *
 *   resident ÷ limit      pressure
 *   > highWater           high
 *   lowWater…highWater    steady
 *   < lowWater            low
 *
 * GOVERN1  There is one sample per period, so limits do not change faster than the period.
 * GOVERN2  The timer never keeps a process alive. After `stop` there is no timer, even if a listener calls `stop`.
 * GOVERN3  If the host does not report its memory, the pressure is `unknown`.
 *
 * Peaks that are shorter than the period may be missed.
 */
import { type Clock, keepAlive } from "../clock.ts";
import { numberFrom, positiveUpTo, type Rule, type Rules, timerMs } from "../options.ts";
import type { Problems } from "../problems.ts";

/** Whether memory is short: `high` lowers limits, `low` raises them again. */
export type Pressure =
  /** Above the high water mark. */
  | "high"
  /** Between the marks: limits stay as they are, so that the last change can take effect. */
  | "steady"
  /** Below the low water mark. */
  | "low"
  /** Not sampled yet, or the host does not report its memory. */
  | "unknown";

/** Options of the governor, which lowers limits while memory is short. */
export interface GovernorOptions {
  /** How often the memory is sampled, in milliseconds. @defaultValue 1,000 */
  everyMs?: number | undefined;
  /** The share of the memory above which limits are lowered, above 0 and at most 1. @defaultValue 0.85 */
  highWater?: number | undefined;
  /** The share of the memory below which limits are raised again; must be below `highWater`. @defaultValue 0.7 */
  lowWater?: number | undefined;
}

/** `GovernorOptions` with the defaults filled in. */
export interface GovernorSettings {
  /** How often the memory is sampled, in milliseconds. */
  readonly everyMs: number;
  /** The share of `limitBytes` above which limits are lowered. */
  readonly highWater: number;
  /** The share of `limitBytes` below which limits are raised again. */
  readonly lowWater: number;
}

/** The settings of the governor and its last sample. */
export interface GovernorState extends GovernorSettings {
  /** The memory that this process may use, in bytes. */
  readonly limitBytes: number;
  /** The result of the last sample; `unknown` before the first one. */
  readonly pressure: Pressure;
  /**
   * Resident memory at the last sample, in bytes; `undefined` before the first sample, or if the host does not report
   * it.
   */
  readonly rssBytes: number | undefined;
  /** `rssBytes` divided by `limitBytes`. */
  readonly load: number | undefined;
  /** The number of samples so far. */
  readonly samples: number;
  /** When the last sample was taken, in milliseconds of the clock; `undefined` before the first one. */
  readonly sampledAt: number | undefined;
}

const share: Rule = positiveUpTo(1);

const RULES: Rules<GovernorOptions> = { everyMs: timerMs, highWater: share, lowWater: share };
const DEFAULTS = { everyMs: 1000, highWater: 0.85, lowWater: 0.7 } satisfies GovernorOptions;

/** Reads the options of a governor, fills in the defaults and adds the problems. */
export function readGovernor(options: GovernorOptions, problems: Problems): GovernorSettings {
  const settings = { ...DEFAULTS, ...problems.readAll(options, RULES, "governor.") } as GovernorSettings;
  const { highWater, lowWater } = settings;
  if (lowWater >= highWater) {
    problems.add(
      `Expected \`governor.lowWater\` to be below \`governor.highWater\`, got ${lowWater} and ${highWater}`,
      true,
    );
  }
  return settings;
}

export interface GovernorHost {
  readonly clock: Clock;
  readonly limitBytes: number;
  rss(): number | undefined;
  onSample(state: GovernorState, before: Pressure): void;
}

export class Governor {
  readonly #host: GovernorHost;
  #state: GovernorState;
  #timer: unknown = undefined;

  constructor(settings: GovernorSettings, host: GovernorHost) {
    this.#host = host;
    this.#state = {
      ...settings,
      limitBytes: host.limitBytes,
      pressure: "unknown",
      rssBytes: undefined,
      load: undefined,
      samples: 0,
      sampledAt: undefined,
    };
    this.#startTimer();
  }

  get state(): GovernorState {
    return this.#state;
  }

  stop(): void {
    this.#host.clock.clearTimer(this.#timer);
  }

  #startTimer(): void {
    const { clock } = this.#host;
    this.#timer = clock.setTimer(() => {
      // Set before the sample is reported, so that a listener that calls `stop` also stops this timer.
      this.#startTimer();
      this.#sample();
    }, this.#state.everyMs);
    keepAlive(this.#timer, false);
  }

  #sample(): void {
    const before = this.#state;
    const rssBytes = this.#rss();
    const load = rssBytes === undefined ? undefined : rssBytes / before.limitBytes;
    const { samples } = before;
    const sampledAt = this.#host.clock.now();
    this.#state = { ...before, rssBytes, load, sampledAt, samples: samples + 1, pressure: this.#pressureOf(load) };
    this.#host.onSample(this.#state, before.pressure);
  }

  #rss(): number | undefined {
    try {
      const bytes = this.#host.rss();
      return numberFrom(0)("rss", bytes) ? undefined : bytes;
    } catch {
      return undefined;
    }
  }

  #pressureOf(load: number | undefined): Pressure {
    const { highWater, lowWater } = this.#state;
    if (load === undefined) return "unknown";
    if (load > highWater) return "high";
    return load < lowWater ? "low" : "steady";
  }
}
