import type { ServeProcess } from "../fleet/serve-process.ts";
import { type Bounds, COUNT_NAMES, type CountName, type Counts } from "../history/counts.ts";

/** The metrics of an instance (docs/reference/metrics.md). */
const METRICS: Record<CountName, string> = {
  begun: "slotkeeper_sessions_started_total",
  granted: 'slotkeeper_sessions_ended_total{end="granted"}',
  returned: "slotkeeper_grants_uncollected_total",
  timeout: 'slotkeeper_sessions_ended_total{end="timeout"}',
  throttled: 'slotkeeper_sessions_ended_total{end="throttled"}',
  canceled: 'slotkeeper_sessions_ended_total{end="canceled"}',
  released: "slotkeeper_slots_released_total",
};
const PATIENCE_MS = 3_000;

/** One count of a run: what the clients' history allows, and the sum over all instances. */
interface ComparedCount extends Bounds {
  readonly name: CountName;
  readonly counted: number;
  readonly isAllowed: boolean;
}

export interface ComparedCounts {
  readonly counts: readonly ComparedCount[];
  /** The instances that ended: what they counted after they were last asked is missing in the sums. */
  readonly ended: number;
}

/** The sums of the counters of all instances of a run, those included that have ended. */
export class InstanceCounts {
  readonly #sums = new Map<CountName, number>(COUNT_NAMES.map((name) => [name, 0]));
  #ended = 0;

  /** Adds the counters of an instance that is about to end. */
  async beforeEnd(process: ServeProcess): Promise<void> {
    this.#ended++;
    await this.#add(process);
  }

  /** Adds the counters of the instances that are left. */
  async compare(left: readonly ServeProcess[], history: Counts): Promise<ComparedCounts> {
    for (const process of left) await this.#add(process);
    const counts = COUNT_NAMES.map((name) => {
      const { least, most } = history[name];
      const counted = this.#sums.get(name) ?? 0;
      return { name, least, most, counted, isAllowed: counted <= most && (counted >= least || this.#ended > 0) };
    });
    return { counts, ended: this.#ended };
  }

  /** An instance that does not answer has lost its counters. */
  async #add({ url }: ServeProcess): Promise<void> {
    const text = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(PATIENCE_MS) })
      .then((answer) => answer.text())
      .catch(() => undefined);
    if (text === undefined) this.#ended++;
    for (const name of COUNT_NAMES)
      this.#sums.set(name, (this.#sums.get(name) ?? 0) + valueOf(text ?? "", METRICS[name]));
  }
}

/** Instances that have counted nothing may not have the line. */
function valueOf(text: string, metric: string): number {
  const line = text.split("\n").find((one) => one.startsWith(`${metric} `));
  return Number(line?.slice(metric.length + 1) ?? 0);
}
