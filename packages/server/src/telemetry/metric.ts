import type { QueueEvent } from "@slotkeeper/queue";
import type { Bucket } from "./buckets.ts";
import type { Histogram } from "./instruments.ts";
import type { Scraped } from "./scrape.ts";

/** A metric: what it is called, what it means, and how to read it. */
export interface Metric {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly Bucket[];
  /** Reads the metric when it is scraped. Without it, `Instruments` counts: the events of `on`, and calls of the code. */
  readonly read?: Read;
  readonly on?: On<string | number>;
  /** The values of the label whose counts are shown from the start. */
  readonly values?: readonly string[];
}

type Read = (scraped: Scraped) => Reading;

/** What to do with an event: returns the value of the label to count, `""` without a label, or a value to observe. */
type On<V> = { readonly [T in QueueEvent["type"]]?: (event: QueueEvent & { type: T }) => V | undefined };

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
  on: On<string> = {},
  label = "",
  values?: readonly string[],
): Metric {
  return { name, kind: "counter", help, labels: label === "" ? [] : [label], on, values: values ?? [] };
}

/** A histogram of values in events, or of calls of `Instruments.record`. */
export function histogram(
  name: string,
  help: string,
  buckets: readonly Bucket[],
  on: On<number> = {},
  ...labels: string[]
): Metric {
  return { name, kind: "histogram", help, labels, buckets, on };
}
