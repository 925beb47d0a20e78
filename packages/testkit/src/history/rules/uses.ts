/**
 * HIST9  No client uses a slot after its lease has ended by its own count. This judges the client, not the service: such a
 *     use may break the limit at the upstream, and only the fence protects it.
 *
 * Not promised: anything about clients that do not write down when they used their slots. Cost: O(n).
 */
import { leaseEnd } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";

export const uses: Rule = {
  name: "HIST9",
  title: "no use after the lease",
  judge(history) {
    const found = new Findings("HIST9", history);
    for (const { slotToken, from, until = history.lines.endsAt, line } of history.lines.uses) {
      const slot = history.slots.get(slotToken);
      if (slot === undefined) {
        found.unjudged.add("a slot that no answer contains is used");
        continue;
      }
      found.judged++;
      const end = leaseEnd(slot);
      if (until <= end) continue;
      const detail = `a client uses its slot until ${Math.round(until - end)} ms after its lease`;
      found.add(slot.session.host, Math.max(from, end), detail, [slot.grants[0], { line }]);
    }
    return found;
  },
};
