/** A time from `from` until just before `until`. */
export interface Span {
  readonly from: number;
  readonly until: number;
}

/** A span in which several slots are held: 1 unless it says otherwise. */
export type WideSpan = Span & { readonly width?: number };

/** When the widths of the spans that overlap are less than `limit`, until `endsAt`. */
export function freeSpans(spans: readonly WideSpan[], limit: number, endsAt: number): Span[] {
  const steps = spans
    .filter(({ from, until }) => until > from)
    .flatMap(({ from, until, width = 1 }) => [
      { at: from, by: width },
      { at: until, by: -width },
    ])
    .sort((a, b) => a.at - b.at || a.by - b.by);
  const free: Span[] = [];
  let [count, since] = [0, limit > 0 ? Number.NEGATIVE_INFINITY : undefined];
  for (const { at, by } of steps) {
    if (at >= endsAt) break;
    count += by;
    if (count >= limit && since !== undefined) {
      if (at > since) free.push({ from: since, until: at });
      since = undefined;
    } else if (count < limit) since ??= at;
  }
  if (since !== undefined && since < endsAt) free.push({ from: since, until: endsAt });
  return free;
}

/** The index of the first of these sorted, disjoint spans that ends after a time. */
export function firstAfter(spans: readonly Span[], at: number): number {
  let [low, high] = [0, spans.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((spans[middle] as Span).until <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The parts of sorted, disjoint spans that lie inside a span. */
export function inside(spans: readonly Span[], { from, until }: Span): Span[] {
  const parts: Span[] = [];
  for (let index = firstAfter(spans, from); index < spans.length; index++) {
    const span = spans[index] as Span;
    if (span.from >= until) break;
    parts.push({ from: Math.max(from, span.from), until: Math.min(until, span.until) });
  }
  return parts;
}

/** The first span in which two lists of sorted, disjoint spans overlap. */
export function firstCommon(ones: readonly Span[], others: readonly Span[]): Span | undefined {
  for (const one of ones) {
    const [common] = inside(others, one);
    if (common !== undefined) return common;
  }
  return undefined;
}

/** Sorts spans, and joins those that overlap or are at most `gapMs` apart. */
export function joined(spans: Iterable<Span>, gapMs = 0): Span[] {
  const result: { from: number; until: number }[] = [];
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (last !== undefined && span.from <= last.until + gapMs) last.until = Math.max(last.until, span.until);
    else result.push({ ...span });
  }
  return result;
}

/** How much of the spans lies before a time, each times its width. */
export function lengthBefore(spans: readonly WideSpan[], at: number): number {
  let length = 0;
  for (const { from, until, width = 1 } of spans) length += width * Math.max(0, Math.min(until, at) - from);
  return length;
}
