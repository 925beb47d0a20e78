/**
 * HIST12  While the breaker of a host is open, none of its sessions gets a slot.
 *
 * Clients know that it is open when a session ends as `throttled`. It opened when an error was reported or an operator
 * opened it, so not before that call was sent; of all calls that may have opened it, the earliest counts. A slot whose
 * session certainly waited when the answer had arrived was granted later, and before it arrived itself.
 *
 * The breaker stays open for `breaker.openSeconds`, or for as long as the session asked for. A session that asked for less
 * may have closed it for all by its success, so the shortest time counts; and so may a probe from before it opened again.
 * Not promised: anything after an operator closed
 * the breaker, lost commits, or a jump of a clock. Cost: O(n o) for o openings.
 */
import { Breaker } from "../openings.ts";
import { Findings, type Rule } from "../rule.ts";

export const openBreaker: Rule = {
  name: "HIST12",
  title: "an open breaker grants nothing",
  judge(history) {
    const found = new Findings("HIST12", history);
    for (const [host, sessions] of history.byHost()) {
      const breaker = new Breaker(history, host, sessions);
      for (const slot of new Set(sessions.flatMap((session) => session.slots))) {
        const opening = breaker.before(slot);
        if (opening === undefined) continue;
        found.judged++;
        const openMs = breaker.leastOpenMs(opening, slot.arrivedAt);
        const sinceMs = slot.arrivedAt - opening.from;
        if (sinceMs >= openMs || breaker.mayBeClosed(opening, Number.POSITIVE_INFINITY, slot.arrivedAt)) continue;
        const detail = `a slot is granted at most ${Math.round(sinceMs)} ms after the breaker opened, for ${openMs} ms`;
        found.add(host, slot.arrivedAt, detail, [opening.call, slot.grants[0]]);
      }
    }
    return found;
  },
};
