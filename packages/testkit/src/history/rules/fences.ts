/**
 * HIST3  No two slots of a host have the same fence, and a slot of a session that began after another slot had arrived
 *     at a client has a higher fence than that one. This holds across every fault.
 *
 * Not promised: the order of fences of sessions that overlap. Cost: O(n log n).
 */
import { Findings, type Rule } from "../rule.ts";

export const fences: Rule = {
  name: "HIST3",
  title: "fences grow",
  judge(history) {
    const found = new Findings("HIST3", history);
    for (const [host, sessions] of history.byHost()) {
      const all = [...new Set(sessions.flatMap((session) => session.slots))];
      const slots = all.filter(({ fence }) => !Number.isNaN(fence));
      if (slots.length < all.length) found.unjudged.add("grants without a fence");
      const seen = new Map<number, (typeof slots)[number]>();
      const byArrival = slots.toSorted((a, b) => a.arrivedAt - b.arrivedAt);
      let arrived = 0;
      let highest: (typeof slots)[number] | undefined;
      for (const slot of slots.sort((a, b) => a.session.askedAt - b.session.askedAt)) {
        found.judged++;
        const { fence, session, grants } = slot;
        for (let next = byArrival[arrived]; next !== undefined && next.arrivedAt < session.askedAt; ) {
          if (highest === undefined || next.fence > highest.fence) highest = next;
          next = byArrival[++arrived];
        }
        const twin = seen.get(fence);
        if (twin !== undefined) {
          found.add(host, slot.arrivedAt, `two slots have the fence ${fence}`, [twin.grants[0], grants[0]]);
        } else if (highest !== undefined && fence <= highest.fence) {
          const detail = `the fence ${fence} is granted after ${highest.fence} had arrived`;
          found.add(host, slot.arrivedAt, detail, [highest.grants[0], grants[0]]);
        }
        for (const other of grants) {
          if (other.fence !== fence) found.add(host, other.answeredAt, "one slot has two fences", [grants[0], other]);
        }
        seen.set(fence, slot);
      }
    }
    return found;
  },
};
