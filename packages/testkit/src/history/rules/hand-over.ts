/**
 * HIST6  No slot stays free for longer than `promptMs` while a client waits for it: no release is lost, and no slot is
 *     kept back. A client waits if it polls without a pause, and neither its bucket's limit or cooldown nor the ceiling of its
 *     class may stop it.
 *
 * A slot counts as free only if no client can have it: one that was given back is free when that was acknowledged, any
 * other when its lease has ended at the latest. A session with a call that was not answered may have a slot until a later
 * call shows that it has none, or until a lease has passed; so may one that paused between two polls.
 *
 * A request that needs several slots may keep others free until it has them. So if a host has such requests, a slot counts
 * as free only while there are enough for the widest of them.
 *
 * Not promised: which waiter gets the slot (HIST7, HIST8); anything about hosts where a bucket may use all of its
 * `maxWaitersPerIp` places, because a client that left keeps its place until it is idle, and hides others of its bucket;
 * anything during a fault, or after the first reported failure of the upstream, because the breaker may hold slots back. A
 * grant counts from two messages before its arrival. Programs that call the SQL functions are not in a history: with them
 * this rule must not be used. Cost: O(n log n).
 */
import type { History, Session } from "../history.ts";
import { Findings, type Rule } from "../rule.ts";
import { freeSpans, inside, type Span } from "../spans.ts";
import { mayFillPlaces, mayHold, type Timing, timingOf, waits, widestOf } from "../waiting.ts";

export const handOver: Rule = {
  name: "HIST6",
  title: "a free slot reaches a waiter in time",
  judge(history) {
    const found = new Findings("HIST6", history);
    for (const [host, sessions] of history.byHost()) {
      const timing = timingOf(history, host);
      const slots = history.facts.of(host).least("maxSlotPerHost", 0, history.lines.endsAt);
      if (timing === undefined || slots === undefined || history.isSemaphore(host)) {
        found.unjudged.add("the configuration, transitMs or promptMs of a host is unknown");
      } else if (
        history.facts
          .of(host)
          .during(0, history.lines.endsAt)
          .some(({ hasBudgets }) => hasBudgets)
      ) {
        found.unjudged.add("a host has budgets, for which slots may stay free");
      } else if (history.facts.of(host).hadKeys) {
        found.unjudged.add("a host has keys, for which slots may stay free");
      } else if (mayFillPlaces(history, host, sessions)) {
        found.unjudged.add("clients that left may have all places of a bucket in the waiter pool");
      } else new HostSlots(history, host, sessions, timing, found).judge(slots);
    }
    return found;
  },
};

interface Hold extends Span {
  readonly bucket: string;
  readonly class: string;
  readonly width: number;
}

class HostSlots {
  readonly #history: History;
  readonly #host: string;
  readonly #sessions: readonly Session[];
  readonly #timing: Timing;
  readonly #found: Findings;
  readonly #holds: readonly Hold[];
  readonly #buckets = new Map<string, readonly Span[]>();
  readonly #classes = new Map<string, readonly Span[]>();

  constructor(history: History, host: string, sessions: readonly Session[], timing: Timing, found: Findings) {
    this.#history = history;
    this.#host = host;
    this.#sessions = sessions;
    this.#timing = timing;
    this.#found = found;
    this.#holds = sessions.flatMap((session) =>
      mayHold(history, session, timing).map((span) => ({ ...span, bucket: session.bucket, class: session.class })),
    );
  }

  judge(slots: number): void {
    const { promptMs } = this.#timing;
    const endsAt = Math.min(this.#history.lines.endsAt, this.#history.failedAt(this.#host));
    const free = freeSpans(this.#holds, slots - (widestOf(this.#sessions) - 1), endsAt).filter(
      ({ from, until }) => until - from > promptMs,
    );
    for (const session of this.#sessions) {
      for (const wait of waits(session, this.#timing)) {
        this.#found.judged++;
        const wasted = free.length === 0 ? undefined : this.#wasted(session, wait, free);
        if (wasted === undefined) continue;
        const calls = session.calls.filter(
          ({ sentAt, answeredAt }) => sentAt < wasted.until && answeredAt > wasted.from,
        );
        const ms = Math.round(wasted.until - wasted.from);
        this.#found.add(this.#host, wasted.from + promptMs, `a client waits for ${ms} ms beside a free slot`, calls);
      }
    }
  }

  #wasted({ bucket, class: of }: Session, wait: Span, free: readonly Span[]): Span | undefined {
    const { promptMs } = this.#timing;
    for (const span of inside(free, wait)) {
      if (span.until - span.from <= promptMs) continue;
      const ofBucket = inside(this.#freeOf(bucket), span);
      for (const part of ofBucket.flatMap((one) => inside(this.#freeOfClass(of), one))) {
        const quiet = this.#history.faults.quiet(part).find(({ from, until }) => until - from > promptMs);
        if (quiet !== undefined) return quiet;
      }
    }
    return undefined;
  }

  /** When the class certainly had room below its ceiling for the widest of its requests. */
  #freeOfClass(of: string): readonly Span[] {
    let free = this.#classes.get(of);
    if (free === undefined) {
      const { endsAt } = this.#history.lines;
      const ceiling = this.#history.facts.of(this.#host).leastOfClass(of, 0, endsAt);
      const widest = widestOf(this.#sessions.filter((session) => session.class === of));
      const holds = this.#holds.filter((hold) => hold.class === of);
      free = freeSpans(holds, ceiling - (widest - 1), endsAt);
      this.#classes.set(of, free);
    }
    return free;
  }

  /** When the bucket was certainly below its limit and without a cooldown. */
  #freeOf(bucket: string): readonly Span[] {
    let free = this.#buckets.get(bucket);
    if (free === undefined) {
      const facts = this.#history.facts.of(this.#host);
      const { endsAt } = this.#history.lines;
      const cooldownMs = 1500 * (facts.most("ipCooldownSeconds", 0, endsAt) ?? 0);
      const limit = cooldownMs > 0 ? 1 : (facts.least("maxSlotPerIp", 0, endsAt) ?? 1);
      const holds = this.#holds
        .filter((hold) => hold.bucket === bucket)
        .map(({ from, until, width }) => ({ from, until: until + cooldownMs, width }));
      const widest = widestOf(this.#sessions.filter((session) => session.bucket === bucket));
      free = freeSpans(bucket === "" ? [] : holds, limit - (widest - 1), endsAt);
      this.#buckets.set(bucket, free);
    }
    return free;
  }
}
