/**
 * Watches the memory of this process and says how much pressure it is under.
 *
 *   resident ÷ limit      pressure
 *   > highWater           high
 *   lowWater…highWater    steady
 *   < lowWater            low
 *
 * GOVERN1  One sample per period, never two: so nothing that follows it changes faster than the period.
 * GOVERN2  Its timer never keeps a process alive, and there is none after `stop`, even if a listener calls it.
 * GOVERN3  A host that fails to answer is no pressure: `unknown`.
 *
 * It promises nothing about peaks shorter than its period.
 */
import { type Clock, keepAlive } from "../clock.ts";
import { numberFrom, positiveUpTo, type Rule, type Rules, timerMs } from "../options.ts";
import type { Problems } from "../problems.ts";
import type { Pressure } from "./governed-limit.ts";

/** Options of the governor, which lowers limits while memory is short. */
export interface GovernorOptions {
  /** How often the memory is looked at. @defaultValue 1 s */
  everyMs?: number | undefined;
  /** Share of the memory above which limits are lowered. @defaultValue 0.85 */
  highWater?: number | undefined;
  /** Share of the memory below which they are raised again. @defaultValue 0.7 */
  lowWater?: number | undefined;
}

/** What the governor last measured, and its settings. */
export interface GovernorState {
  readonly everyMs: number;
  readonly highWater: number;
  readonly lowWater: number;
  readonly limitBytes: number;
  readonly pressure: Pressure;
  /** Resident memory at the last sample. */
  readonly rssBytes: number | undefined;
  /** Of the limit. */
  readonly load: number | undefined;
  readonly samples: number;
  readonly sampledAt: number | undefined;
}

const share: Rule = positiveUpTo(1);

const RULES: Rules<GovernorOptions> = { everyMs: timerMs, highWater: share, lowWater: share };
const DEFAULTS = { everyMs: 1000, highWater: 0.85, lowWater: 0.7 } satisfies GovernorOptions;

export function expectGovernor(options: GovernorOptions = {}, problems: Problems): void {
  problems.expectAll(options, RULES, "governor.");
  const { highWater = DEFAULTS.highWater, lowWater = DEFAULTS.lowWater } = options;
  if (lowWater >= highWater) {
    problems.add(
      `Expected \`governor.lowWater\` to be below \`governor.highWater\`, got ${lowWater} and ${highWater}`,
      true,
    );
  }
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

  constructor(options: GovernorOptions, host: GovernorHost) {
    const { everyMs = DEFAULTS.everyMs, highWater = DEFAULTS.highWater, lowWater = DEFAULTS.lowWater } = options;
    this.#host = host;
    this.#state = {
      everyMs,
      highWater,
      lowWater,
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
      // Before the sample: a listener that stops us stops this one, too.
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
