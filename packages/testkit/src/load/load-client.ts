import type { HostPlan } from "./load-plan.ts";

export interface LoadTarget {
  readonly url: string;
  /** Headers with the shared key, if the service requires one. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface LoadCounts {
  granted: number;
  rejected: number;
  errors: number;
}

interface Reply {
  readonly result: string;
  readonly queryToken?: string;
  readonly slotToken?: string;
  readonly throttleRetryAfter?: number;
  readonly retryAfter?: number;
}

/** The longest pause of a client after a refusal, so that a demonstration continues. */
const LONGEST_PAUSE_MS = 5_000;
const POLL_MS = 5_000;

/**
 * One closed loop: it asks for a slot, holds it, releases it and pauses. It continues after the service was
 * unreachable.
 */
export class LoadClient {
  readonly #target: LoadTarget;
  readonly #plan: HostPlan;
  readonly #bucket: string;
  readonly #counts: LoadCounts;
  readonly #signal: AbortSignal;

  constructor(target: LoadTarget, plan: HostPlan, bucket: string, counts: LoadCounts, signal: AbortSignal) {
    this.#target = target;
    this.#plan = plan;
    this.#bucket = bucket;
    this.#counts = counts;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    await this.#pause(Math.random() * this.#plan.pauseMs[1]);
    while (!this.#signal.aborted) {
      try {
        await this.#once();
      } catch {
        this.#counts.errors++;
        await this.#pause(500);
      }
    }
  }

  async #once(): Promise<void> {
    const { hostname, holdMs, pauseMs, failures = 0, demand } = this.#plan;
    const { ask, used } = demand?.(Math.random) ?? {};
    let reply = await this.#post("acquire", { hostname, ipBucket: this.#bucket, waitMs: POLL_MS, ...ask });
    while (reply.result === "pending") reply = await this.#post("acquire", { queryToken: reply.queryToken });
    if (reply.slotToken === undefined) {
      this.#counts.rejected++;
      const seconds = reply.throttleRetryAfter ?? reply.retryAfter ?? 0;
      await this.#pause(Math.min(LONGEST_PAUSE_MS, seconds * 1000) + between(pauseMs));
      return;
    }
    this.#counts.granted++;
    await this.#pause(between(holdMs));
    const status = Math.random() < failures ? 503 : 200;
    await this.#post("release", { slotToken: reply.slotToken, status, used });
    await this.#pause(between(pauseMs));
  }

  async #post(route: string, body: object): Promise<Reply> {
    const { url, headers = {} } = this.#target;
    const init = { method: "POST", headers, body: JSON.stringify(body), signal: this.#signal };
    const response = await fetch(`${url}/api/v0/fairqueue/${route}`, init);
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return (await response.json()) as Reply;
  }

  /** Ends early when the load is stopped. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#signal.addEventListener("abort", end);
      if (this.#signal.aborted) end();
    });
  }
}

function between([least, most]: readonly [number, number]): number {
  return least + Math.random() * (most - least);
}
