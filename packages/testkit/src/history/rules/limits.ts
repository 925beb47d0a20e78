/**
 * HIST1  At no time do clients certainly hold more slots than the host has, or than a bucket, a class or all requests with the same
 *     value of a key may have; a request without a required key has none; and a grant states a limit that was in force.
 *
 * A slot is certainly held from the arrival of its answer until its client sends a release or a cancellation, an
 * operator sends a revocation, or the lease ends, counted from the sending of the last successful call. Slots of one
 * instant count together, so the last of them was granted while the others were held. The limit is the highest that may
 * have been in force since the youngest of their sessions began: lowering it takes no slot away. A grant that states a
 * width counts as that number of slots, and it must be the width that was asked for.
 *
 * Not promised: that the service keeps the limit for slots that no client received. Without facts, the host's limit is
 * the highest that a grant of the host states, and limits of buckets are not judged. After lost commits or a jump of the
 * store's clock, slots of earlier sessions do not count. Cost: O(n log n).
 */
import type { Config } from "../facts.ts";
import { groupBy } from "../group-by.ts";
import type { History, Session, Slot } from "../history.ts";
import { certainEnd } from "../history.ts";
import type { KeyFacts } from "../line.ts";
import { Findings, type Rule } from "../rule.ts";

export const limits: Rule = {
  name: "HIST1",
  title: "limits of hosts, buckets, keys and classes",
  judge(history) {
    const found = new Findings("HIST1", history);
    for (const [host, sessions] of history.byHost()) {
      const slots = sessions.flatMap((session) => session.slots);
      judgeStatedLimits(history, host, slots, found);
      let stated = 0;
      for (const { grants } of slots) for (const { limit = 0 } of grants) stated = Math.max(stated, limit);
      const { facts } = history;
      const isSemaphore = history.isSemaphore(host);
      const most = (from: number, to: number) =>
        isSemaphore ? stated : (facts.of(host).most("maxSlotPerHost", from, to) ?? stated);
      if (stated === 0 && facts.of(host).during(0, history.lines.endsAt).length === 0) {
        if (slots.length > 0) found.unjudged.add("the limit of a host is unknown");
        continue;
      }
      found.judged += slots.length;
      sweep(history, host, slots, most, "slots of the host", found);
      if (isSemaphore) continue;
      judgeBuckets(history, host, sessions, found);
      judgeKeys(history, host, sessions, found);
      judgeClasses(history, host, sessions, found);
    }
    return found;
  },
};

function judgeBuckets(history: History, host: string, sessions: readonly Session[], found: Findings): void {
  const facts = history.facts.of(host);
  for (const [bucket, ofBucket] of groupBy(sessions, (session) => session.bucket)) {
    // The shared bucket of callers without one has no limit.
    if (bucket === "") continue;
    const most = (from: number, to: number) => facts.most("maxSlotPerIp", from, to) ?? Number.POSITIVE_INFINITY;
    const slots = ofBucket.flatMap((session) => session.slots);
    sweep(history, host, slots, most, `slots of the bucket ${JSON.stringify(bucket)}`, found);
  }
}

function judgeKeys(history: History, host: string, sessions: readonly Session[], found: Findings): void {
  const facts = history.facts.of(host);
  judgeRequired(sessions, Object.entries(facts.unchanged?.keys ?? {}), found);
  for (const name of new Set(sessions.flatMap(({ keys }) => Object.keys(keys)))) {
    const withKey = sessions.filter(({ keys }) => keys[name] !== undefined && keys[name] !== "");
    for (const [value, ofValue] of groupBy(withKey, ({ keys }) => keys[name] as string)) {
      const slotsOf = ({ keys: { [name]: key } }: Config) =>
        (key?.shadow === true ? undefined : (key?.for?.[value]?.slots ?? key?.slots)) ?? Number.POSITIVE_INFINITY;
      const most = (from: number, to: number) => {
        const configs = facts.during(from, to);
        return configs.length === 0 ? Number.POSITIVE_INFINITY : Math.max(...configs.map(slotsOf));
      };
      const slots = ofValue.flatMap((session) => session.slots);
      sweep(history, host, slots, most, `slots of the key ${name} = ${JSON.stringify(value)}`, found);
    }
  }
}

/** A request without a required key is refused. */
function judgeRequired(sessions: readonly Session[], keys: readonly [string, KeyFacts][], found: Findings): void {
  const required = keys.filter(([, { required: isRequired, shadow }]) => isRequired === true && shadow !== true);
  for (const { host, keys: values, slots, calls } of sessions) {
    const missing = required.find(([name]) => (values[name] ?? "") === "");
    const [slot] = slots;
    if (missing !== undefined && slot !== undefined)
      found.add(host, slot.arrivedAt, `a grant without the required key ${missing[0]}`, [calls[0], slot.grants[0]]);
  }
}

function judgeClasses(history: History, host: string, sessions: readonly Session[], found: Findings): void {
  const facts = history.facts.of(host);
  for (const [name, ofClass] of groupBy(sessions, (session) => session.class)) {
    const slots = ofClass.flatMap((session) => session.slots);
    const most = (from: number, to: number) => facts.mostOfClass(name, from, to);
    sweep(history, host, slots, most, `slots of the class ${JSON.stringify(name)}`, found);
  }
}

type Limit = (from: number, to: number) => number;

function sweep(history: History, host: string, slots: Slot[], most: Limit, what: string, found: Findings): void {
  const steps: { at: number; slot: Slot; isEnd: boolean }[] = [];
  for (const slot of new Set(slots)) {
    const end = certainEnd(history, slot);
    if (end > slot.arrivedAt) steps.push({ at: slot.arrivedAt, slot, isEnd: false }, { at: end, slot, isEnd: true });
  }
  // A slot that is given back at the instant of a grant is free before it.
  steps.sort((a, b) => a.at - b.at || Number(b.isEnd) - Number(a.isEnd));
  const held = new Set<Slot>();
  let count = 0;
  for (const { at, slot, isEnd } of steps) {
    count += isEnd ? -slot.width : slot.width;
    if (isEnd) held.delete(slot);
    else {
      held.add(slot);
      // Nearly always within the limit of this moment; the exact span costs more.
      if (count <= most(at, at)) continue;
      const limit = most(Math.max(...[...held].map(({ session }) => session.askedAt)), at);
      if (count <= limit) continue;
      const grants = [...held].map(({ grants: [first] }) => first);
      found.add(host, at, `${count} ${what} are held at once, ${limit} allowed`, grants);
    }
  }
}

function judgeStatedLimits(history: History, host: string, slots: readonly Slot[], found: Findings): void {
  const facts = history.facts.of(host);
  for (const { session, width, grants } of slots) {
    if (width === session.width) continue;
    const detail = `${width} slots are granted to a request for ${session.width}`;
    found.add(host, grants[0]?.answeredAt ?? 0, detail, [session.calls[0], grants[0]]);
  }
  if (history.isSemaphore(host)) return;
  for (const { session, grants } of slots) {
    for (const call of grants) {
      const inForce = facts.during(session.askedAt, call.answeredAt).map(({ maxSlotPerHost }) => maxSlotPerHost);
      if (call.limit === undefined || inForce.length === 0 || inForce.includes(call.limit)) continue;
      const detail = `a grant states the limit ${call.limit}, but ${inForce.join(" or ")} was in force`;
      found.add(host, call.answeredAt, detail, [call]);
    }
  }
}
