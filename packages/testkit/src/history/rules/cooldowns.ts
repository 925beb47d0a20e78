/**
 * HIST10  After a release, or a cancellation that ends a slot, the bucket gets no slot of the host for
 *     `ipCooldownSeconds`.
 *
 * The cooldown begins when the service ends the slot, so never before the client sends the call; and a slot is granted
 * before it arrives. Which slots had ended at a grant follows from the bucket's limit (`../succession.ts`).
 *
 * Not promised: anything about callers without a bucket, slots that ended by their lease or were revoked, sessions before
 * lost commits or a jump of the store's clock, and grants while the clock of an instance is wrong. Not judged: buckets
 * without a limit. Cost: O(n w).
 */
import { groupBy } from "../group-by.ts";
import type { History } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";
import { clockErrorMs, type Succession, successions } from "../succession.ts";

export const cooldowns: Rule = {
  name: "HIST10",
  title: "the cooldown of a bucket",
  judge(history) {
    const found = new Findings("HIST10", history);
    for (const [host, sessions] of history.byHost()) {
      const facts = history.facts.of(host);
      if (!((facts.most("ipCooldownSeconds", 0, history.lines.endsAt) ?? 0) > 0) || history.isSemaphore(host)) continue;
      const most = (from: number, to: number) => facts.most("maxSlotPerIp", from, to);
      const buckets = groupBy(
        sessions.filter(({ bucket }) => bucket !== ""),
        ({ bucket }) => bucket,
      );
      for (const ofBucket of buckets.values()) {
        const slots = ofBucket.flatMap((session) => session.slots);
        for (const one of successions(history, slots, most)) judgeGrant(history, host, one, found);
      }
    }
    return found;
  },
};

function judgeGrant(history: History, host: string, { slot, givenBack, ended }: Succession, found: Findings): void {
  // If other ones had ended, they were given back later.
  const last = givenBack[ended - 1];
  if (last === undefined || history.faults.hasClockJump(last.sentAt, slot.arrivedAt)) return;
  found.judged++;
  const coolMs = 1000 * (history.facts.of(host).least("ipCooldownSeconds", last.sentAt, slot.arrivedAt) ?? 0);
  const sinceMs = slot.arrivedAt - last.sentAt;
  if (sinceMs >= coolMs - clockErrorMs(history, host)) return;
  const name = JSON.stringify(slot.session.bucket);
  const detail = `bucket ${name} gets a slot ${Math.round(sinceMs)} ms after it gave one back, its cooldown is ${coolMs} ms`;
  found.add(host, slot.arrivedAt, detail, [last.slot.grants[0], last.slot.releases[0], slot.grants[0]]);
}
