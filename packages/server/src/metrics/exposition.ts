import { METRICS, type Metric, type MetricId } from "./catalogue.ts";
import type { Histogram } from "./histogram.ts";

type Labels = { readonly [name: string]: string };

/** One page in the Prometheus text format 0.0.4. Written by hand: see `docs/decisions/0092`. */
export class Exposition {
  readonly #lines: string[] = [];
  #open: MetricId | undefined;

  /** The series of one metric must be added together: the first one starts the metric. */
  add(id: MetricId, value: number, labels: Labels = {}): void {
    this.#head(id);
    this.#lines.push(`${METRICS[id].name}${labelText(labels)} ${numberText(value)}`);
  }

  histogram(id: MetricId, { bounds, counts, sum }: Histogram, labels: Labels = {}): void {
    this.#head(id);
    const { name } = METRICS[id];
    let total = 0;
    for (const [at, count] of counts.entries()) {
      total += count;
      const le = at < bounds.length ? String(bounds[at]) : "+Inf";
      this.#lines.push(`${name}_bucket${labelText({ ...labels, le })} ${total}`);
    }
    this.#lines.push(`${name}_sum${labelText(labels)} ${numberText(sum)}`);
    this.#lines.push(`${name}_count${labelText(labels)} ${total}`);
  }

  toString(): string {
    return `${this.#lines.join("\n")}\n`;
  }

  #head(id: MetricId): void {
    if (this.#open === id) return;
    this.#open = id;
    const { name, help, kind }: Metric = METRICS[id];
    this.#lines.push(`# HELP ${name} ${help.replaceAll("\\", "\\\\")}`, `# TYPE ${name} ${kind}`);
  }
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function numberText(value: number): string {
  return Number.isFinite(value) ? String(value) : value > 0 ? "+Inf" : Number.isNaN(value) ? "NaN" : "-Inf";
}
