import type { QueueEvent } from "@slotkeeper/queue";
import type { Bucket } from "./buckets.ts";
import type { Scraped } from "./scrape.ts";
import type { Histogram } from "./telemetry.ts";

/** A metric: what it is called, what it means, and how to read it. */
export interface Metric {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly Bucket[];
  /** Reads the metric when it is scraped. Without it, `Instruments` counts: the events of `counts` or `times`, and calls of the code. */
  readonly read?: Read;
  readonly counts?: Counting;
  readonly times?: Timing;
  /** The values of the label whose counts are shown from the start. */
  readonly values?: readonly string[];
}

export type Read = (scraped: Scraped) => Reading;

/** The value of the label that an event counts for, `""` without a label; or how it is found, if not every such event counts. */
type Counting = {
  readonly [T in QueueEvent["type"]]?: string | ((event: QueueEvent & { type: T }) => string | undefined);
};
/** The field of an event whose milliseconds are recorded as seconds, unless it is undefined. */
type Timing = { readonly [T in QueueEvent["type"]]?: Exclude<keyof (QueueEvent & { type: T }), "type"> };

/** One value, or one for each value of the labels; `undefined` if the store that has it does not answer. */
export type Reading = number | Iterable<Series> | undefined;
export type Series = readonly [labels: string | readonly string[], value: number | Histogram];

export function gauge(name: string, help: string, read: Read, ...labels: string[]): Metric {
  return { name, kind: "gauge", help, labels, read };
}

export function counter(name: string, help: string, read: Read, ...labels: string[]): Metric {
  return { name, kind: "counter", help, labels, read };
}

/** A counter of events, or of calls of `Instruments.count`. Its label, if it has one, has these values. */
export function counted(
  name: string,
  help: string,
  counts: Counting = {},
  label = "",
  values: readonly string[] = [],
): Metric {
  return { name, kind: "counter", help, labels: label === "" ? [] : [label], counts, values };
}

/** A histogram of values in events, or of calls of `Instruments.record`. */
export function histogram(
  name: string,
  help: string,
  buckets: readonly Bucket[],
  times: Timing = {},
  ...labels: string[]
): Metric {
  return { name, kind: "histogram", help, labels, buckets, times };
}
