/**
 * HIST11  A slot that was given back is free no earlier than `minSlotHoldMs` after its hit, and released slots of a host
 *     become free at least `smoothReleaseIntervalMs` apart; but no later than one lease after the release.
 *
 * The hit is what the release says; of a cancellation, or a release that does not say it, the grant. A slot is free no
 * earlier than its client sends the call. Which slots had ended at a grant follows from the host's limit
 * (`../succession.ts`): of all ways in which this number of them can have ended, the soonest must fit.
 *
 * Not promised: spacing while the configuration changes; anything about slots that ended by their lease or were revoked,
 * sessions before lost commits or a jump of the store's clock, and grants while the clock of an instance is wrong. Cost:
 * O(n w).
 */
import { type History, leaseMsOf } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";
import { clockErrorMs, type GivenBack, type Succession, successions } from "../succession.ts";

export const heldBack: Rule = {
  name: "HIST11",
  title: "the minimum hold and the spacing of releases",
  judge(history) {
    const found = new Findings("HIST11", history);
    const { endsAt } = history.lines;
    for (const [host, sessions] of history.byHost()) {
      const facts = history.facts.of(host);
      if (history.isSemaphore(host) || !facts.during(0, endsAt).some(({ hasSpacing }) => hasSpacing)) continue;
      const most = (from: number, to: number) => facts.most("maxSlotPerHost", from, to);
      const slots = sessions.flatMap((session) => session.slots);
      for (const succession of successions(history, slots, most)) {
        judgeGrant(history, host, succession, found);
      }
    }
    return found;
  },
};

function judgeGrant(history: History, host: string, succession: Succession, found: Findings): void {
  const { slot, givenBack, ended } = succession;
  const from = givenBack[0]?.sentAt ?? slot.arrivedAt;
  if (history.faults.hasClockJump(from, slot.arrivedAt)) return;
  found.judged++;
  const latest = from + leaseMsOf(history, host, slot.arrivedAt);
  const earlyMs = Math.min(soonest(history, host, succession, from), latest) - slot.arrivedAt;
  if (earlyMs <= clockErrorMs(history, host)) return;
  const detail = `a slot is granted ${Math.round(earlyMs)} ms before ${ended} of the slots that were given back can be free`;
  found.add(host, slot.arrivedAt, detail, [...givenBack.map((one) => one.slot.grants[0]), slot.grants[0]]);
}

/** When enough of the slots were free, at the earliest. */
function soonest(history: History, host: string, succession: Succession, from: number): number {
  const { slot, givenBack, ended } = succession;
  const facts = history.facts.of(host);
  const holdMs = facts.least("minSlotHoldMs", from, slot.arrivedAt) ?? 0;
  const [config, ...others] = facts.during(from, slot.arrivedAt);
  const spacingMs = others.length === 0 ? (config?.spacingMs ?? 0) : 0;
  const free = givenBack.map((one) => Math.max(one.sentAt, hitFrom(one) + holdMs)).sort((a, b) => a - b);
  let at = Number.NEGATIVE_INFINITY;
  for (const one of free.slice(0, ended)) at = Math.max(one, at + spacingMs);
  return at;
}

/** The time of the hit, at the earliest. A cancellation that is answered with `noop` may repeat one whose answer was lost. */
function hitFrom({ slot: { releases, session }, grantedFrom }: GivenBack): number {
  // A hit in the future may count as none.
  const hits = releases.map(({ sentAt, hitAgeMs }) => (hitAgeMs >= 0 ? sentAt - hitAgeMs : grantedFrom));
  return Math.min(...hits, ...(session.cancels.length > 0 ? [grantedFrom] : []));
}
