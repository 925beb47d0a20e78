/**
 * HIST13  A breaker that has been open lets at most `breaker.halfOpenProbes` sessions use slots at a time, until a success
 *     is reported.
 *
 * A slot that was granted after the breaker had opened is such a probe, if no success that may have closed the breaker
 * was reported before the slot arrived: one that took effect while the breaker was open does not close it, unless it is
 * that of an earlier probe. Slots count while their clients certainly hold them (HIST1).
 *
 * Not promised: anything an hour after the breaker opened, or after what HIST12 excludes. Cost: O(n w).
 */
import { certainEnd, type History, type Session, type Slot } from "../history.ts";
import { Breaker } from "../openings.ts";
import { Findings, type Rule } from "../rule.ts";

/** An open breaker counts as closed after this time. */
const HOUR_MS = 3_600_000;

export const probes: Rule = {
  name: "HIST13",
  title: "the probes of a half-open breaker",
  judge(history) {
    const found = new Findings("HIST13", history);
    for (const [host, sessions] of history.byHost()) judgeHost(history, host, sessions, found);
    return found;
  },
};

function judgeHost(history: History, host: string, sessions: readonly Session[], found: Findings): void {
  const breaker = new Breaker(history, host, sessions);
  const slots = [...new Set(sessions.flatMap((session) => session.slots))].sort((a, b) => a.arrivedAt - b.arrivedAt);
  let held: Slot[] = [];
  for (const slot of slots) {
    const { arrivedAt } = slot;
    held = held.filter((other) => certainEnd(history, other) > arrivedAt);
    held.push(slot);
    const opening = breaker.before(slot);
    if (opening === undefined || arrivedAt >= opening.from + HOUR_MS) continue;
    const halfOpenFrom = opening.from + breaker.leastOpenMs(opening, arrivedAt);
    if (breaker.mayBeClosed(opening, halfOpenFrom, arrivedAt)) continue;
    found.judged++;
    const most = history.facts.of(host).most("halfOpenProbes", opening.from, arrivedAt) ?? Number.POSITIVE_INFINITY;
    const out = held.filter((other) => breaker.before(other)?.from === opening.from);
    if (out.length <= most) continue;
    const detail = `${out.length} probes of a half-open breaker are out at once, ${most} allowed`;
    found.add(host, arrivedAt, detail, [opening.call, ...out.map(({ grants }) => grants[0])]);
  }
}
