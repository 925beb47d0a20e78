import { type Demand, demandOf, type FairQueueConfig, widthOf } from "@slotkeeper/protocol";
import { type QueueOptions, type ResolvedHost, resolveHost, resolveOptions } from "@slotkeeper/queue";
import { type DecideContext, type Input, type Note } from "@slotkeeper/queue/internals";
import { GRACE_MS, type Host, type View } from "./engine-host.ts";
import { classNames } from "./random-classes.ts";
import { type Ask, type History, type Step, statusOf } from "./random-history.ts";

/** A bug for one of the two: another configuration, other secrets. */
export interface Changed {
  readonly config?: ((config: FairQueueConfig) => FairQueueConfig) | undefined;
  readonly newSecret?: (() => string) | undefined;
}

/** A session as its clients know it. After its deadline, the id is used for another one. */
interface Life {
  readonly bucket: string;
  readonly demand: Demand | undefined;
  readonly arrivedAt: number;
  deadlineAt: number;
  pendingAt: number | undefined;
}

type SessionAsk = "arrive" | "again" | "extend" | "timeout" | "cancel" | "away" | "back" | "return";

const START = 1_000_000;

/** One of the two hosts with its clients: the inputs follow from the answers that they got. */
export class Side {
  readonly #history: History;
  readonly #host: Host;
  readonly #changed: Changed;
  readonly #options: readonly QueueOptions[];
  readonly #lives = new Map<string, Life>();
  /** The last token of each session. */
  readonly #tokens = new Map<string, string>();
  #now = START;
  #view: View;
  #arrivals = 0;
  #secrets = 0;

  constructor(history: History, host: Host, changed: Changed = {}) {
    this.#history = history;
    this.#host = host;
    this.#changed = changed;
    this.#options = history.configs.map((config) => resolveOptions(changed.config?.(config) ?? config));
    this.#view = host.view(START);
  }

  async decide(step: Step): Promise<object> {
    this.#now += step.afterMs;
    const inputs = step.asks.map((ask) => this.#inputOf(ask, step));
    const { outcomes, notes, isForgotten } = await this.#host.decide(inputs, this.#contextOf(step));
    const view = this.#host.view(this.#now);
    this.#view = view;
    for (const [session, token] of this.#host.tokens()) this.#tokens.set(session, token);
    for (const { session } of view.waiters) (this.#lives.get(session) as Life).pendingAt = this.#now;
    return { outcomes, notes: notes.flatMap(roundedNote).toSorted(byText), isForgotten, ...view };
  }

  #limits({ config }: Step): ResolvedHost {
    return resolveHost(this.#options[config] as QueueOptions, this.#history.isSemaphore ? "sem:h" : "h.test");
  }

  #lifeOf({ kind, session, bucket, isOdd, number }: Ask, step: Step): Life {
    const known = this.#lives.get(session);
    // When the end of a session is not needed any more, it is not defined whether the book still has it.
    const usedMs = kind === "arrive" ? 0 : GRACE_MS;
    if (known !== undefined && known.deadlineAt + usedMs > this.#now) return known;
    const { maxWaitMs } = this.#options[step.config] as QueueOptions;
    const aheadMs = isOdd ? ([-50, -5, 500, 1_500][number % 4] as number) : 0;
    const arrivedAt = this.#now + aheadMs + (this.#history.hasTies ? 0 : this.#arrivals++ / 16_384);
    const width = 1 + (number % this.#history.mostWidth);
    const cost = number % 5 < 2 ? { tokens: number % 7 } : undefined;
    const keys = this.#keysOf(number);
    const demand = demandOf({ width, cost, keys, class: this.#classOf(number) });
    const life = { bucket, demand, arrivedAt, deadlineAt: this.#now + maxWaitMs, pendingAt: undefined };
    this.#lives.set(session, life);
    return life;
  }

  /** Most sessions have a value for each key that the host had at first. */
  #keysOf(number: number): { [name: string]: string } {
    const names = Object.keys(this.#history.configs[0].keys ?? {}).filter((name) => name !== "bucket");
    const values = names.map((name, at) => [name, `${name[0]}${Math.floor(number / (at + 2)) % 3}`] as const);
    return Object.fromEntries(values.filter((_, at) => (number >> at) % 6 !== 0));
  }

  /** At a host with classes, one of those that it has at some time, or now and then one that it never has. */
  #classOf(number: number): string | undefined {
    const named = this.#history.configs.flatMap(classNames);
    const names = [...new Set(["default", ...named])];
    if (named.length === 0) return undefined;
    return number % 31 === 0 ? "unknown" : names[Math.floor(number / 3) % names.length];
  }

  #inputOf(ask: Ask, step: Step): Input {
    const { kind, session, number, isOdd } = ask;
    const now = this.#now;
    const slotToken = this.#tokens.get(session) ?? "slot_h.none";
    const hitAt = isOdd ? undefined : now - (number % 5) * 20 + (number > 950 ? 1_000 : 0);
    switch (kind) {
      case "release":
        return {
          kind,
          slotToken,
          hitAt,
          status: number % 2 ? statusOf(ask) : undefined,
          ...(number % 3 === 0 ? { used: { tokens: usedOf(number), unknown: 1 } } : {}),
        };
      case "late":
        return { kind: "release", slotToken, hitAt: undefined, status: undefined };
      case "renew":
        return { kind, slotToken };
      case "revoke":
        return { kind, fence: this.#fenceOf(session) };
      case "report":
        return { kind, status: statusOf(ask) };
      case "breaker":
        return { kind, isOpen: isOdd };
      case "pause":
        return { kind, isPaused: number % 4 === 0 };
      case "limits":
        return { kind, limits: isOdd ? undefined : { slots: (number % 4) + 1 } };
      case "dead":
        return { kind, instance: `i${number % 3}` };
      case "unspace":
      case "forget":
        return { kind };
      case "arrive":
      case "again":
      case "extend":
      case "timeout":
      case "cancel":
      case "away":
      case "back":
      case "return":
        return this.#inputOfSession({ ...ask, kind }, step);
    }
  }

  #fenceOf(session: string): number {
    return this.#view.leases.find((lease) => lease.session === session)?.fence ?? 1;
  }

  #inputOfSession(ask: Ask & { kind: SessionAsk }, step: Step): Input {
    const { kind, session, number, isOdd } = ask;
    const now = this.#now;
    const isReturning = (this.#lives.get(session)?.deadlineAt ?? now) > now && kind !== "extend";
    const life = this.#lifeOf(ask, step);
    if (kind === "extend") life.deadlineAt = Math.max(life.deadlineAt, now + 500);
    const { bucket, arrivedAt, deadlineAt } = life;
    const demand = kind === "extend" && isOdd ? otherDemand(life.demand, number) : life.demand;
    const pendingAt = isOdd ? life.pendingAt : undefined;
    const limits = this.#limits(step);
    const openMs = number < 100 ? number * 10 : limits.policy.breaker.openMs;
    const joining = {
      session,
      bucket,
      weight: limits.weightOf(bucket),
      arrivedAt,
      deadlineAt,
      openMs,
      demand,
    };
    const at = now - (number % 3) * 60;
    const ending = { kind: "end", session, bucket, arrivedAt, keepUntil: deadlineAt, pendingAt, at } as const;
    switch (kind) {
      case "timeout":
        return { ...ending, end: "timeout" };
      case "cancel":
        return { ...ending, end: "canceled" };
      case "away":
        return { kind: "client", session, awayAt: now - (number % 4) * 100 };
      case "back":
        return { kind: "client", session, awayAt: undefined };
      case "return":
        return { kind, fence: this.#fenceOf(session), awayAt: now - (number % 2) * 100, ...joining };
      case "arrive":
      case "again":
      case "extend":
        return {
          kind: "arrive",
          limit: number < 300 ? (number % 3) + 1 : undefined,
          isReturning,
          pendingAt,
          ...joining,
        };
    }
  }

  #contextOf(step: Step): DecideContext {
    const { instance, polled, away, sent, seenMs } = step;
    const { collectMs, cancelMs, pollIntervalMs, idleMs, scheduler } = this.#options[step.config] as QueueOptions;
    const { isSemaphore, mostEnds } = this.#history;
    return {
      now: this.#now,
      instance,
      limits: {
        policy: this.#limits(step).policy,
        loadedAt: step.config === 0 ? START : this.#now,
        hostname: step.hostname,
      },
      isSemaphore,
      collectMs,
      cancelMs,
      pollIntervalMs,
      idleMs,
      mostEnds,
      scheduler,
      newSecret: this.#changed.newSecret ?? (() => `${this.#secrets++}`),
      isPolledHere: (session) => polled.includes(session),
      awayHere: (session) => (away[session] === undefined ? undefined : this.#now - collectMs - away[session]),
      isTokenSent: (session) => sent.includes(session),
      isUndelivered: (session) => !sent.includes(session),
      seenAt: (one) => (seenMs[one] === undefined ? undefined : this.#now - seenMs[one]),
    };
  }
}

/** Now and then a repeated first call asks for something else. */
function otherDemand(demand: Demand | undefined, number: number): Demand {
  if (demand?.class !== undefined && number % 2 === 0) return { ...demand, class: `${demand.class}2` };
  if (number % 3 === 0) return { ...demand, width: widthOf(demand) + 1 };
  if (number % 3 === 1) return { ...demand, cost: { tokens: (demand?.cost?.["tokens"] ?? 0) + 1 } };
  return { ...demand, keys: { ...demand?.keys, tenant: "t9" } };
}

/** Now and then an amount is impossible, or far above the largest debt. */
function usedOf(number: number): number {
  return number % 11 === 10 ? ([-1, Number.NaN, Number.POSITIVE_INFINITY, 10_000][number % 4] as number) : number % 11;
}

/** Sums of fractions have rounding errors. */
function roundedNote(note: Note): Note[] {
  if (note.kind !== "excess") return [note];
  const units = Math.round(note.units * 1e3) / 1e3;
  return units === 0 ? [] : [{ ...note, units }];
}

function byText(a: Note, b: Note): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}
