import type { ServiceHistory } from "@slotkeeper/protocol";

/**
 * Fifteen minutes of one host, or of all hosts, in steps of five seconds.
 *
 * RING1  Memory is fixed: `STEPS` steps of `FIELDS` numbers.
 * RING2  Each step belongs to its own time. Steps in which nothing was written exist: their counts are 0, and their
 *     gauges have the last values.
 * RING3  If time runs backwards, values go to the newest step.
 * RING4  `known` counts the steps since the ring was created. Earlier steps are 0.
 *
 * The caller passes the time; nothing here reads a clock.
 */
export const STEP_MS = 5_000;
/** The number of steps that are kept. */
export const STEPS = 180;

/** The upper bounds of the classes of waits, for quantiles and the histogram of a host. */
export const WAIT_BOUNDS_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 20_000, 30_000, 60_000];

const COUNTED = ["granted", "timeout", "throttled", "overloaded", "canceled", "released"] as const;
const GAUGES = ["inFlight", "limit", "waiters"] as const;
export type Counted = (typeof COUNTED)[number];
export type Gauges = { readonly [name in (typeof GAUGES)[number]]: number };

const GAUGES_AT = COUNTED.length;
const WAITS_AT = GAUGES_AT + GAUGES.length;
const FIELDS = WAITS_AT + WAIT_BOUNDS_MS.length + 1;

/** The counts, gauges and waits of the last steps, in a fixed amount of memory. */
export class HistoryRing {
  readonly #numbers = new Float32Array(STEPS * FIELDS);
  readonly #firstStep: number;
  #step: number;

  constructor(now: number) {
    this.#step = stepOf(now);
    this.#firstStep = this.#step;
  }

  count(what: Counted, now: number): void {
    const at = this.#advance(now) + COUNTED.indexOf(what);
    this.#numbers[at] = (this.#numbers[at] ?? 0) + 1;
  }

  addWait(waitedMs: number, now: number): void {
    let bound = 0;
    while (bound < WAIT_BOUNDS_MS.length && waitedMs > (WAIT_BOUNDS_MS[bound] as number)) bound++;
    const at = this.#advance(now) + WAITS_AT + bound;
    this.#numbers[at] = (this.#numbers[at] ?? 0) + 1;
  }

  sample(gauges: Gauges, now: number): void {
    const base = this.#advance(now);
    GAUGES.forEach((name, index) => {
      this.#numbers[base + GAUGES_AT + index] = gauges[name];
    });
  }

  /** The last sampled gauges. */
  get gauges(): Gauges {
    const base = (this.#step % STEPS) * FIELDS;
    const [inFlight = 0, limit = 0, waiters = 0] = this.#numbers.subarray(base + GAUGES_AT, base + WAITS_AT);
    return { inFlight, limit, waiters };
  }

  /** The steps, oldest first. The last one is not complete yet. */
  read(now: number): HistoryColumns {
    this.#advance(now);
    const bases = Array.from({ length: STEPS }, (_, ago) => ((this.#step + 1 + ago) % STEPS) * FIELDS);
    const column = (field: number) => bases.map((base) => this.#numbers[base + field] ?? 0);
    const named = (names: readonly string[], from: number) =>
      Object.fromEntries(names.map((name, index) => [name, column(from + index)]));
    const waits = bases.map((base) => this.#numbers.subarray(base + WAITS_AT, base + FIELDS));
    const counts = Array.from({ length: FIELDS - WAITS_AT }, (_, bound) =>
      waits.reduce((sum, step) => sum + (step[bound] ?? 0), 0),
    );
    return {
      known: Math.min(STEPS, this.#step - this.#firstStep + 1),
      ...(named(COUNTED, 0) as Record<Counted, number[]>),
      ...(named(GAUGES, GAUGES_AT) as Record<keyof Gauges, number[]>),
      waitP50Ms: waits.map((step) => quantile(step, 0.5)),
      waitP95Ms: waits.map((step) => quantile(step, 0.95)),
      waits: { boundsMs: [...WAIT_BOUNDS_MS], counts },
    };
  }

  /** Makes the step of `now` the current one, and returns its offset. */
  #advance(now: number): number {
    const step = stepOf(now);
    if (step <= this.#step) return (this.#step % STEPS) * FIELDS;
    const { gauges } = this;
    // After a silence longer than the ring, every step is overwritten once. More would be useless.
    this.#step = Math.max(this.#step, step - STEPS);
    while (this.#step < step) {
      this.#step++;
      const base = (this.#step % STEPS) * FIELDS;
      this.#numbers.fill(0, base, base + FIELDS);
      GAUGES.forEach((name, index) => {
        this.#numbers[base + GAUGES_AT + index] = gauges[name];
      });
    }
    return (this.#step % STEPS) * FIELDS;
  }
}

/** What the history of a host has beside its name and the time. */
export type HistoryColumns = Omit<ServiceHistory, "at" | "stepMs" | "host" | "isTracked">;

function stepOf(now: number): number {
  return Math.floor(now / STEP_MS);
}

/**
 * Interpolates within a class as if its waits were spread evenly. Above the last bound, returns the last bound; `null`
 * without waits.
 */
function quantile(counts: Float32Array, share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (const [bound, upper] of WAIT_BOUNDS_MS.entries()) {
    const count = counts[bound] ?? 0;
    if (below + count >= share * total) {
      const lower = WAIT_BOUNDS_MS[bound - 1] ?? 0;
      return lower + ((share * total - below) / count) * (upper - lower);
    }
    below += count;
  }
  return WAIT_BOUNDS_MS.at(-1) ?? null;
}
