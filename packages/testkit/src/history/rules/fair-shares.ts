/**
 * HIST8  Two buckets of a host that both always have waiters, from the time when the host was new, stay within
 *     |u/w - u'/w'| <= H/w + H/w' + V/min(w, w') (docs/explanation/fairness.md): u is the slot time of a bucket, w its
 *     weight, H the longest hold of the host, and V the slot time of buckets that did not always wait. With requests for up
 *     to W > 1 slots, or classes, 2 W H instead of H. What they had used when both began to wait is added on both sides. At a
 *     host with classes the same holds for two buckets of one class, and for two classes.
 *
 * The slot time of the bucket that is ahead counts while its clients certainly hold their slots; that of the other while
 * they possibly do.
 *
 * Not promised: anything about hosts with limits per bucket below the host's, cooldown, spacing, a changed
 * configuration, the weighted scheduler, `order: "fifo"`, named semaphores, or a waiter pool that may be full; nothing
 * after a fault or a reported failure; nothing about a class with a floor or a ceiling compared with another. Only the first common wait is judged, of the {@link MOST_RIVALS} buckets (or classes) with the
 * most grants. Cost: O(n log n + n b) for b buckets; more for two that differ by more than H/w + H/w'.
 */

import type { Config } from "../facts.ts";
import { groupBy } from "../group-by.ts";
import { certainEnd, type History, type Session } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";
import { firstCommon, joined, lengthBefore, type Span, type WideSpan } from "../spans.ts";
import { lineOf, mayFillPool, mayHold, type Timing, timingOf, waits, widestOf } from "../waiting.ts";

const MOST_RIVALS = 24;
/** Use is compared at this number of times. */
const LOOKS = 200;

export const fairShares: Rule = {
  name: "HIST8",
  title: "the fairness bound",
  judge(history) {
    const found = new Findings("HIST8", history);
    for (const [host, sessions] of history.byHost()) {
      const timing = timingOf(history, host);
      const config = history.facts.of(host).unchanged;
      if (timing === undefined || config === undefined) {
        found.unjudged.add("the configuration, transitMs or promptMs of a host is unknown, or changed");
        continue;
      }
      const reason = unfit(history, host, sessions, config);
      if (reason !== undefined) found.unjudged.add(reason);
      else judgeHost(history, host, sessions, timing, config, found);
    }
    return found;
  },
};

function unfit(history: History, host: string, sessions: readonly Session[], config: Config): string | undefined {
  const { maxSlotPerHost, maxSlotPerIp } = config;
  if (!history.facts.of(host).isFresh) return "a host was in use before the history began";
  if (history.isSemaphore(host)) return "a host is a named semaphore";
  if (maxSlotPerIp > 0 && maxSlotPerIp < maxSlotPerHost) return "the buckets of a host have a limit of their own";
  if (config.ipCooldownSeconds > 0 || config.hasSpacing) return "a host has cooldown or spacing";
  if (config.hasBudgets) return "a host has budgets";
  if (config.hasKeys) return "a host has keys";
  if (config.order !== "slot-seconds" || config.isWeighted) return "the order of a host is not by slot-seconds";
  if (mayFillPool(history, host, sessions)) return "the waiter pool of a host may be full";
  return undefined;
}

/** A bucket, a bucket of one class, or a class. */
interface Rival {
  readonly name: string;
  readonly weight: number;
  readonly sessions: readonly Session[];
  readonly certain: readonly WideSpan[];
  readonly possible: readonly WideSpan[];
  readonly waits: readonly Span[];
}

function judgeHost(
  history: History,
  host: string,
  sessions: readonly Session[],
  timing: Timing,
  config: Config,
  found: Findings,
): void {
  const widest = widestOf(sessions);
  const factor = widest > 1 || config.hasClasses ? 2 * widest : 1;
  const lines = [...groupBy(sessions, lineOf)].map(([name, ofLine]) => rivalOf(history, name, ofLine, timing, 1));
  for (const rivals of rivalsOf(history, sessions, timing, config)) {
    const chosen = rivals.sort((a, b) => b.certain.length - a.certain.length).slice(0, MOST_RIVALS);
    judgeRivals(history, host, chosen, lines, factor, found);
  }
}

/** Which share slots among themselves: the buckets of each class, and the classes without floor and ceiling. */
function rivalsOf(history: History, sessions: readonly Session[], timing: Timing, config: Config): Rival[][] {
  const classes = [...groupBy(sessions, (session) => session.class)];
  const lines = classes.map(([name, ofClass]) =>
    [...groupBy(ofClass, ({ bucket }) => bucket)].map(([bucket, ofLine]) => {
      const of = config.hasClasses ? ` of class ${JSON.stringify(name)}` : "";
      const weight = config.weights[bucket] ?? 1;
      return rivalOf(history, `bucket ${JSON.stringify(bucket)}${of}`, ofLine, timing, weight);
    }),
  );
  const unbound = classes.filter(([name]) => {
    const { floor = 0, ceiling = Number.POSITIVE_INFINITY } = config.classes[name] ?? {};
    return floor === 0 && ceiling >= config.maxSlotPerHost;
  });
  const ofClasses = unbound.map(([name, ofClass]) =>
    rivalOf(history, `class ${JSON.stringify(name)}`, ofClass, timing, config.classes[name]?.weight ?? 1),
  );
  return [...lines, ofClasses];
}

function judgeRivals(
  history: History,
  host: string,
  rivals: readonly Rival[],
  lines: readonly Rival[],
  factor: number,
  found: Findings,
): void {
  const holds = lines.flatMap(({ possible }) => possible);
  for (const one of rivals) {
    for (const other of rivals) {
      const span = one === other ? undefined : commonWait(history, host, one, other);
      if (span === undefined) continue;
      found.judged++;
      const holdMs = holds.reduce((most, { from, until }) => Math.max(most, Math.min(until, span.until) - from), 0);
      const visits = () =>
        lines.filter((line) => !waitsFor(line, span) && !isPartOf(line, one) && !isPartOf(line, other));
      judgePair({ ahead: one, behind: other, span, holdMs: factor * holdMs, visits }, host, found);
    }
  }
}

function waitsFor({ waits: times }: Rival, span: Span): boolean {
  return times.some(({ from, until }) => from <= span.from && span.until <= until);
}

function isPartOf(line: Rival, rival: Rival): boolean {
  return rival.sessions.includes(line.sessions[0] as Session);
}

function rivalOf(history: History, name: string, sessions: readonly Session[], timing: Timing, weight: number): Rival {
  const slots = sessions.flatMap((session) => session.slots);
  return {
    name,
    weight,
    sessions,
    certain: slots.map((slot) => ({ from: slot.arrivedAt, until: certainEnd(history, slot), width: slot.width })),
    possible: sessions.flatMap((session) => mayHold(history, session, timing)),
    waits: joined(
      sessions.flatMap((session) => waits(session, timing)),
      timing.transitMs,
    ),
  };
}

/** The first time for which both always have waiters. */
function commonWait(history: History, host: string, one: Rival, other: Rival): Span | undefined {
  const first = firstCommon(one.waits, other.waits);
  if (first === undefined) return undefined;
  const until = Math.min(first.until, history.failedAt(host));
  const [quiet] = history.faults.quiet({ from: Number.NEGATIVE_INFINITY, until });
  return quiet === undefined || quiet.until <= first.from ? undefined : { from: first.from, until: quiet.until };
}

function used({ weight, possible }: Rival, at: number): number {
  return lengthBefore(possible, at) / weight;
}

/** Two rivals that always wait during the span. */
interface Pair {
  readonly ahead: Rival;
  readonly behind: Rival;
  readonly span: Span;
  readonly holdMs: number;
  /** The lines of others that do not always wait. */
  readonly visits: () => readonly Rival[];
}

function judgePair({ ahead, behind, span, holdMs, visits }: Pair, host: string, found: Findings): void {
  const start = Math.max(used(ahead, span.from), used(behind, span.from));
  const lightest = Math.min(ahead.weight, behind.weight);
  const constant = holdMs / ahead.weight + holdMs / behind.weight + 2 * start;
  const stepMs = (span.until - span.from) / LOOKS;
  for (let look = 1; look <= LOOKS; look++) {
    const at = span.from + look * stepMs;
    const lead = lengthBefore(ahead.certain, at) / ahead.weight - used(behind, at);
    if (lead <= constant) continue;
    const visited = visits().reduce(
      (sum, { possible }) => sum + lengthBefore(possible, at) - lengthBefore(possible, span.from),
      0,
    );
    const bound = constant + visited / lightest;
    if (lead <= bound) continue;
    const detail = `${ahead.name} has used ${Math.round(lead)} ms per weight more than ${behind.name}, the bound is ${Math.round(bound)} ms`;
    const calls = [ahead, behind].map(({ sessions }) => sessions.find(({ calls }) => calls.length > 0)?.calls[0]);
    found.add(host, at, detail, calls);
    return;
  }
}
