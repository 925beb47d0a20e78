import { isDeepStrictEqual } from "node:util";
import type { FairQueueConfig } from "@slotkeeper/protocol";
import {
  type DecideContext,
  type Input,
  type Note,
  type QueueOptions,
  type ResolvedHost,
  resolveHost,
  resolveOptions,
} from "@slotkeeper/queue";
import { type Host, referenceHost, type View } from "./engine-host.ts";
import { type Ask, type History, type Step, statusOf } from "./random-history.ts";

/** The first step at which the two hosts differ. */
export interface Difference {
  readonly step: number;
  readonly what: string;
  readonly expected: string;
  readonly got: string;
}

/** A bug for one of the two: another configuration, other secrets. */
export interface Changed {
  readonly config?: ((config: FairQueueConfig) => FairQueueConfig) | undefined;
  readonly newSecret?: (() => string) | undefined;
}

/** A session as its clients know it. After its deadline, the id is used for another one. */
interface Life {
  readonly bucket: string;
  readonly arrivedAt: number;
  deadlineAt: number;
  pendingAt: number | undefined;
}

const START = 1_000_000;

/** Gives the history to the engine and to the reference, and compares them after every step. */
export async function compareHistory(
  history: History,
  engine: Host,
  changed: Changed = {},
): Promise<Difference | undefined> {
  const [right, tried] = [new Side(history, referenceHost()), new Side(history, engine, changed)];
  for (const [at, step] of history.steps.entries()) {
    const expected = await right.decide(step);
    let got: object;
    try {
      got = await tried.decide(step);
    } catch (error) {
      return { step: at, what: "decisions", expected: JSON.stringify(expected), got: String(error) };
    }
    for (const [what, one] of Object.entries(expected)) {
      const other = (got as Record<string, unknown>)[what];
      if (!isDeepStrictEqual(one, other))
        return { step: at, what, expected: JSON.stringify(one), got: JSON.stringify(other) };
    }
  }
  return undefined;
}

/** One of the two hosts with its clients: the inputs follow from what they were told. */
class Side {
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
    return { outcomes, notes: notes.filter(({ kind }) => kind !== "denied").toSorted(byText), isForgotten, ...view };
  }

  #limits({ config }: Step): ResolvedHost {
    return resolveHost(this.#options[config] as QueueOptions, this.#history.isSemaphore ? "sem:h" : "h.test");
  }

  #lifeOf({ kind, session, bucket, isOdd, number }: Ask, step: Step): Life {
    const known = this.#lives.get(session);
    if (known !== undefined && (kind !== "arrive" || known.deadlineAt > this.#now)) return known;
    const { maxWaitMs } = this.#options[step.config] as QueueOptions;
    // Every arrival has its own time, because the order of equal times in different buckets is not defined.
    const aheadMs = isOdd ? ([-50, -5, 500, 1_500][number % 4] as number) : 0;
    const arrivedAt = this.#now + aheadMs + this.#arrivals++ / 16_384;
    const life = { bucket, arrivedAt, deadlineAt: this.#now + maxWaitMs, pendingAt: undefined };
    this.#lives.set(session, life);
    return life;
  }

  #inputOf(ask: Ask, step: Step): Input {
    const { kind, session, number, isOdd } = ask;
    const now = this.#now;
    const isReturning = this.#lives.has(session) && (this.#lives.get(session) as Life).deadlineAt > now;
    const life = this.#lifeOf(ask, step);
    if (kind === "extend") life.deadlineAt = Math.max(life.deadlineAt, now + 500);
    const { bucket, arrivedAt, deadlineAt } = life;
    const pendingAt = isOdd ? life.pendingAt : undefined;
    const { policy, weightOf } = this.#limits(step);
    const openMs = number < 100 ? number * 10 : policy.breaker.openMs;
    const joining = { session, bucket, weight: weightOf(bucket), arrivedAt, deadlineAt, openMs };
    const ending = {
      kind: "end",
      session,
      bucket,
      arrivedAt,
      keepUntil: deadlineAt,
      pendingAt,
      at: now - (number % 3) * 60,
    } as const;
    const slotToken = this.#tokens.get(session) ?? "slot_h.none";
    const fence = this.#view.leases.find((lease) => lease.session === session)?.fence ?? 1;
    switch (kind) {
      case "arrive":
      case "again":
      case "extend":
        return {
          kind: "arrive",
          limit: number < 300 ? (number % 3) + 1 : undefined,
          isReturning: isReturning && kind !== "extend",
          pendingAt,
          ...joining,
        };
      case "release":
        return {
          kind,
          slotToken,
          hitAt: isOdd ? undefined : now - (number % 5) * 20 + (number > 950 ? 1_000 : 0),
          status: number % 2 ? statusOf(ask) : undefined,
        };
      case "late":
        return { kind: "release", slotToken, hitAt: undefined, status: undefined };
      case "renew":
        return { kind, slotToken };
      case "timeout":
        return { ...ending, end: "timeout", isUndelivered: isOdd };
      case "cancel":
        return { ...ending, end: "canceled", isUndelivered: isOdd };
      case "away":
        return { kind: "client", session, awayAt: now - (number % 4) * 100 };
      case "back":
        return { kind: "client", session, awayAt: undefined };
      case "return":
        return { kind, awayAt: now - (number % 2) * 100, ...joining };
      case "report":
        return { kind, status: statusOf(ask) };
      case "breaker":
        return { kind, isOpen: isOdd };
      case "limits":
        return { kind, limits: isOdd ? undefined : { slots: (number % 4) + 1 } };
      case "dead":
        return { kind, instance: `i${number % 3}` };
      case "revoke":
        return { kind, fence };
      case "unspace":
        return { kind };
      case "forget":
        return { kind };
    }
  }

  #contextOf(step: Step): DecideContext {
    const { instance, polled, away, sent, seenMs, random } = step;
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
      random: () => random,
      newSecret: this.#changed.newSecret ?? (() => `${this.#secrets++}`),
      isPolledHere: (session) => polled.includes(session),
      awayHere: (session) => (away[session] === undefined ? undefined : this.#now - collectMs - away[session]),
      isTokenSent: (session) => sent.includes(session),
      seenAt: (one) => (seenMs[one] === undefined ? undefined : this.#now - seenMs[one]),
    };
  }
}

function byText(a: Note, b: Note): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

/** Leaves out steps and inputs as long as the hosts still differ. */
export async function shrinkHistory(
  history: History,
  differs: (shorter: History) => Promise<boolean>,
): Promise<History> {
  let shortest = history;
  for (let isShorter = true; isShorter; ) {
    isShorter = false;
    for (const shorter of shorterOnes(shortest)) {
      if (!(await differs(shorter))) continue;
      shortest = shorter;
      isShorter = true;
      break;
    }
  }
  return shortest;
}

function* shorterOnes(history: History): Generator<History> {
  const { steps } = history;
  for (let length = steps.length >> 1; length >= 1; length >>= 1) {
    for (let at = steps.length - length; at >= 0; at -= length)
      yield { ...history, steps: steps.toSpliced(at, length) };
  }
  for (const [at, step] of steps.entries()) {
    for (const [index] of step.asks.entries()) {
      yield { ...history, steps: steps.with(at, { ...step, asks: step.asks.toSpliced(index, 1) }) };
    }
  }
}

/** One line for each step. */
export function formatHistory({ configs, steps }: History): string {
  const lines = steps.map(({ asks, ...step }, at) => {
    const shown = asks.map(
      ({ kind, session, bucket, number, isOdd }) => `${kind} ${session}/${bucket} ${number}${isOdd ? " odd" : ""}`,
    );
    return `${at}: ${JSON.stringify(step)}\n   ${shown.join("; ")}`;
  });
  return [JSON.stringify(configs[0]), ...lines].join("\n");
}
