import { type FactsLine, type HistoryLine, judgeHistory, type RuleName } from "@slotkeeper/testkit/history";

interface Ask {
  readonly host?: string;
  readonly bucket?: string;
  readonly requestId?: string;
  readonly waitMs?: number;
  readonly throttleTimeWindowSeconds?: number;
  readonly cost?: { readonly [budget: string]: number };
  readonly class?: string;
  readonly keys?: { readonly [name: string]: string };
}

const DEFAULT_FACTS: FactsLine = {
  kind: "facts",
  at: 0,
  fairQueue: { maxSlotPerHost: 2, maxSlotPerIp: -1, maxWaitersPerHost: 0, maxWaitMs: 60_000, zombieTimeoutSeconds: 30 },
  instances: 1,
  isFresh: true,
  transitMs: 5,
  promptMs: 1_000,
};

/** A history that is written by hand: sessions, and the lines of their calls. */
export class Script {
  readonly lines: HistoryLine[] = [];
  #count = 0;

  constructor(facts: Partial<FactsLine> = {}) {
    const { fairQueue, ...more } = facts;
    const merged = { ...DEFAULT_FACTS, ...more, fairQueue: { ...DEFAULT_FACTS.fairQueue, ...fairQueue } };
    this.lines.push(merged);
  }

  /** A new session. It has asked nothing yet. */
  session(ask: Ask = {}): ScriptSession {
    this.#count++;
    return new ScriptSession(this, this.#count, ask);
  }

  fault(fault: "delay" | "lost-commits" | "store-clock" | "instance-clock", from: number, until: number): this {
    this.lines.push({ kind: "fault", fault, from, until });
    return this;
  }

  /** The rules that the history breaks, each once. */
  broken(): RuleName[] {
    return [...new Set(judgeHistory(this.lines).violations.map(({ rule }) => rule))].sort();
  }
}

interface Granted {
  readonly fence?: number;
  readonly slotToken?: string;
  readonly leaseMs?: number;
  readonly limit?: number;
  readonly queryToken?: string;
  readonly charged?: { readonly [budget: string]: number };
}

export class ScriptSession {
  readonly #script: Script;
  readonly #first: object;
  #isFirst = true;
  readonly queryToken: string;
  slotToken: string;

  constructor(script: Script, number: number, { host = "a.example", bucket = "", ...more }: Ask) {
    this.#script = script;
    this.#first = { hostname: host, ipBucket: bucket, waitMs: 5_000, ...more };
    this.queryToken = `query-${number}`;
    this.slotToken = `slot_${number}`;
  }

  /** The next call of `acquire`: the first one, then polls. */
  ask(sentAt: number, answeredAt: number | undefined, answer: object = {}): this {
    const ask = this.#isFirst ? this.#first : { queryToken: this.queryToken };
    this.#isFirst = false;
    this.#call("acquire", sentAt, answeredAt, ask, 200, answer);
    return this;
  }

  pending(sentAt: number, answeredAt: number, more: object = {}): this {
    return this.ask(sentAt, answeredAt, { result: "pending", queryToken: this.queryToken, ...more });
  }

  granted(sentAt: number, answeredAt: number, { fence, ...more }: Granted = {}): this {
    if (more.slotToken !== undefined) this.slotToken = more.slotToken;
    const { queryToken, slotToken } = this;
    const granted = { result: "granted", queryToken, slotToken, fence: fence ?? answeredAt, leaseMs: 30_000, limit: 2 };
    return this.ask(sentAt, answeredAt, { ...granted, ...more });
  }

  timeout(sentAt: number, answeredAt: number, reason: string): this {
    return this.ask(sentAt, answeredAt, { result: "timeout", reason });
  }

  release(sentAt: number, status = 200, more: object = {}, answeredAt = sentAt + 1): this {
    this.#call("release", sentAt, answeredAt, { slotToken: this.slotToken, status, ...more }, 200, { result: "ok" });
    return this;
  }

  /** A release that gets no answer. */
  lostRelease(sentAt: number): this {
    this.#call("release", sentAt, undefined, { slotToken: this.slotToken }, 200, {});
    return this;
  }

  renew(sentAt: number, answeredAt: number, status = 200): this {
    this.#call("renew", sentAt, answeredAt, { slotToken: this.slotToken }, status, { result: "ok", leaseMs: 30_000 });
    return this;
  }

  cancel(sentAt: number, answeredAt: number, result = "canceled"): this {
    this.#call("cancel", sentAt, answeredAt, { queryToken: this.queryToken }, 200, { result });
    return this;
  }

  use(from: number, until: number): this {
    this.#script.lines.push({ kind: "use", slotToken: this.slotToken, from, until });
    return this;
  }

  #call(
    call: "acquire" | "release" | "renew" | "cancel",
    sentAt: number,
    answeredAt: number | undefined,
    ask: object,
    status: number,
    answer: object,
  ): void {
    const answered = answeredAt === undefined ? { gaveUpAt: sentAt + 100 } : { answeredAt, status, answer };
    this.#script.lines.push({ kind: "call", call, sentAt, ask, ...answered });
  }
}
