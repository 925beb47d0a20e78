/**
 * The specification as arrays: slow, obvious, synchronous. Time goes millisecond by millisecond, and at each of them
 * every waiter is looked at. Property tests do the same to it and to the real limiter and compare.
 */
export type Fate = "waiting" | "held" | "released" | "expired" | "timed out" | "aborted" | "queue full" | "never";

export interface NaiveBudget {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
  readonly strict: boolean;
}

export interface NaiveOptions {
  readonly slots: number;
  readonly budgets: readonly NaiveBudget[];
  readonly perKey: { readonly slots: number; readonly budgets: readonly NaiveBudget[] } | undefined;
  readonly levels: number;
  readonly ageAfterMs: number;
  readonly ttlMs: number;
  readonly maxWaiters: number;
}

interface Ask {
  readonly id: number;
  readonly key: string | undefined;
  readonly costs: readonly number[];
  readonly level: number;
  readonly signal: number | undefined;
  readonly sinceAt: number;
  readonly timeoutAt: number;
}

interface Hold {
  readonly id: number;
  readonly key: string | undefined;
  readonly grantedAt: number;
  readonly expiresAt: number;
  readonly costs: number[];
  isSettled: boolean;
}

/** A budget as the history of what was charged to it. */
class Account {
  readonly #limits: NaiveBudget;
  #history: { at: number; amount: number }[] = [];
  #blockedUntil = -Infinity;
  #withheld = { amount: 0, until: -Infinity };

  constructor(limits: NaiveBudget) {
    this.#limits = limits;
  }

  available(now: number): number {
    const { limit, perMs, burst, strict } = this.#limits;
    if (strict) {
      const inWindow = this.#history.filter(({ at }) => at + perMs > now);
      const withheld = this.#withheld.until > now ? this.#withheld.amount : 0;
      return limit - withheld - inWindow.reduce((sum, { amount }) => sum + amount, 0);
    }
    let [spent, last] = [0, 0];
    for (const { at, amount } of [...this.#history, { at: now, amount: 0 }]) {
      spent = Math.max(0, spent - ((at - last) * limit) / perMs) + amount;
      last = at;
    }
    return burst - spent;
  }

  canPay(cost: number, now: number): boolean {
    return this.#blockedUntil <= now && this.available(now) >= cost - 1e-6;
  }

  charge(amount: number, now: number): void {
    this.#history.push({ at: now, amount });
  }

  /** As if less had been charged. */
  refund(amount: number, chargedAt: number): void {
    const entry = this.#history.find(({ at, amount: charged }) => at === chargedAt && charged >= amount);
    if (entry) entry.amount -= amount;
  }

  learn(remaining: number, resetMs: number, now: number): void {
    const excess = this.available(now) - remaining;
    if (excess > 0 && !this.#limits.strict) this.charge(excess, now);
    if (excess > 0 && this.#limits.strict) {
      if (this.#withheld.until <= now) this.#withheld.amount = 0;
      this.#withheld = { amount: this.#withheld.amount + excess, until: Math.max(this.#withheld.until, now + resetMs) };
    }
    if (remaining === 0) this.#blockedUntil = Math.max(this.#blockedUntil, now + resetMs);
  }

  isFull(now: number): boolean {
    return this.available(now) >= this.#limits.burst - 1e-9;
  }
}

class Key {
  readonly budgets: Account[];
  readonly weights: number[];
  lastChargedAt = -Infinity;

  constructor(budgets: readonly NaiveBudget[], names: number) {
    this.budgets = budgets.map((limits) => new Account(limits));
    this.weights = Array.from({ length: names }, () => 0);
  }

  get share(): number {
    return Math.max(0, ...this.weights);
  }
}

export class NaiveLimiter {
  now: number;
  isPaused = false;
  heldBackUntil = -Infinity;
  queue: Ask[] = [];
  holders: Hold[] = [];
  readonly fates = new Map<number, Fate>();
  readonly grants: { id: number; at: number }[] = [];
  readonly #options: NaiveOptions;
  readonly #common: Account[];
  readonly #keys = new Map<string | undefined, Key>();
  readonly #startedAt: number;
  readonly #windowMs: number;
  readonly #shareOfUnit: number[];

  constructor(options: NaiveOptions, now: number) {
    this.#options = options;
    this.now = now;
    this.#startedAt = now;
    this.#common = options.budgets.map((limits) => new Account(limits));
    const counted = options.perKey?.budgets.length ? options.perKey.budgets : options.budgets;
    this.#windowMs = options.perKey ? Math.max(0, ...counted.map(({ perMs }) => perMs)) : 0;
    this.#shareOfUnit = counted.map(({ limit, perMs }) => perMs / this.#windowMs / limit);
  }

  acquire(ask: Omit<Ask, "sinceAt">): void {
    this.#forgetIfIdle(ask.key);
    this.queue.push({ ...ask, sinceAt: this.now });
    this.fates.set(ask.id, "waiting");
    this.#serve();
    if (this.fates.get(ask.id) !== "waiting") return;
    if (ask.timeoutAt === this.now) this.#leave(ask.id, "timed out");
    else if (this.queue.length > this.#options.maxWaiters) this.#leave(ask.id, "queue full");
  }

  tryAcquire(ask: Omit<Ask, "sinceAt" | "timeoutAt" | "signal">): void {
    this.#forgetIfIdle(ask.key);
    this.queue.push({ ...ask, signal: undefined, sinceAt: this.now, timeoutAt: Infinity });
    this.fates.set(ask.id, "waiting");
    this.#serve();
    if (this.fates.get(ask.id) === "waiting") this.#leave(ask.id, "never");
  }

  release(id: number, retryAfterMs = 0): boolean {
    if (retryAfterMs && this.holders.some((hold) => hold.id === id)) {
      this.heldBackUntil = Math.max(this.heldBackUntil, this.now + retryAfterMs);
    }
    return this.#giveBack(id, "released");
  }

  settle(id: number, actual: readonly (number | undefined)[]): boolean {
    const hold = this.holders.find((one) => one.id === id);
    if (hold === undefined || hold.isSettled) return false;
    hold.isSettled = true;
    for (const [index, one] of actual.entries()) if (one !== undefined) this.#correct(hold, index, one);
    this.#serve();
    return true;
  }

  abort(signal: number): void {
    const leaving = this.queue.filter((ask) => ask.signal === signal);
    this.queue = this.queue.filter((ask) => ask.signal !== signal);
    for (const { id } of leaving) this.fates.set(id, "aborted");
    this.#serve();
  }

  clear(): void {
    const leaving = this.queue;
    this.queue = [];
    for (const { id } of leaving) this.fates.set(id, "aborted");
  }

  pause(isPaused: boolean): void {
    this.isPaused = isPaused;
    this.#serve();
  }

  learn(index: number, remaining: number, resetMs: number): void {
    this.#common[index]?.learn(remaining, resetMs, this.now);
    this.#serve();
  }

  advance(ms: number): void {
    for (const until = this.now + ms; this.now < until; ) {
      this.now++;
      this.#serve();
      const due = [
        ...this.queue.map(({ id, timeoutAt }) => ({ id, at: timeoutAt, was: "waiting" })),
        ...this.holders.map(({ id, expiresAt }) => ({ id, at: expiresAt, was: "held" })),
      ];
      for (const { id, was } of due.filter(({ at }) => at <= this.now).sort((a, b) => a.at - b.at)) {
        if (this.fates.get(id) !== was) continue;
        if (was === "held") this.#giveBack(id, "expired");
        else this.#leave(id, "timed out");
      }
    }
  }

  availableOf(index: number): number | undefined {
    return this.#common[index]?.available(this.now);
  }

  #key(key: string | undefined): Key {
    const budgets = key === undefined ? [] : (this.#options.perKey?.budgets ?? []);
    const known = this.#keys.get(key) ?? new Key(budgets, this.#shareOfUnit.length);
    this.#keys.set(key, known);
    return known;
  }

  #forgetIfIdle(key: string | undefined): void {
    const known = key === undefined ? undefined : this.#keys.get(key);
    const isBusy = this.queue.some((ask) => ask.key === key) || this.holders.some((hold) => hold.key === key);
    if (known === undefined || isBusy || known.lastChargedAt + this.#windowMs > this.now) return;
    if (known.budgets.every((budget) => budget.isFull(this.now))) this.#keys.delete(key);
  }

  #levelOf({ level, sinceAt }: Ask): number {
    const { ageAfterMs } = this.#options;
    return ageAfterMs === Infinity ? level : Math.max(0, level - Math.floor((this.now - sinceAt) / ageAfterMs));
  }

  /** In which order those of one key go. */
  #precedes(a: Ask, b: Ask): boolean {
    return this.#levelOf(a) < this.#levelOf(b) || (this.#levelOf(a) === this.#levelOf(b) && a.id < b.id);
  }

  #isBlockedByKey({ key, costs }: Ask): boolean {
    const { perKey } = this.#options;
    if (perKey === undefined || key === undefined) return false;
    const held = this.holders.filter((hold) => hold.key === key).length;
    return (
      held >= perKey.slots || this.#key(key).budgets.some((one, index) => !one.canPay(costs[index] ?? 0, this.now))
    );
  }

  #first(): Ask | undefined {
    const isFront = (ask: Ask) =>
      !this.queue.some((other) => this.#group(other) === this.#group(ask) && this.#precedes(other, ask));
    const fronts = this.queue.filter((ask) => isFront(ask) && !this.#isBlockedByKey(ask));
    const top = Math.min(...fronts.map((ask) => this.#levelOf(ask)));
    const byShare = fronts
      .filter((ask) => this.#levelOf(ask) === top)
      .sort((a, b) => this.#key(this.#group(a)).share - this.#key(this.#group(b)).share || a.id - b.id);
    const [first] = byShare;
    if (top > 0 || first === undefined) return first;
    const groups = new Set(byShare.map((ask) => this.#group(ask)));
    const veterans = this.queue.filter(
      (ask) => ask.level > 0 && this.#levelOf(ask) === 0 && groups.has(this.#group(ask)),
    );
    const oldest = veterans.find((ask) => veterans.every(({ id }) => ask.id <= id));
    if (oldest === undefined || oldest.id > first.id) return first;
    return byShare.find((ask) => this.#group(ask) === this.#group(oldest));
  }

  /** Without limits per key all are of one group. */
  #group({ key }: { readonly key: string | undefined }): string | undefined {
    return this.#options.perKey ? key : undefined;
  }

  #serve(): void {
    while (!this.isPaused && this.heldBackUntil <= this.now) {
      const first = this.#first();
      if (first === undefined || this.holders.length >= this.#options.slots) return;
      if (this.#common.some((budget, index) => !budget.canPay(first.costs[index] ?? 0, this.now))) return;
      this.#grant(first);
    }
  }

  #grant(ask: Ask): void {
    const { id, key, costs } = ask;
    this.queue = this.queue.filter((one) => one !== ask);
    const expiresAt = this.now + this.#options.ttlMs;
    this.holders.push({ id, key, grantedAt: this.now, expiresAt, costs: [...costs], isSettled: false });
    this.fates.set(id, "held");
    this.grants.push({ id, at: this.now });
    for (const [index, cost] of costs.entries()) {
      this.#common[index]?.charge(cost, this.now);
      this.#key(this.#group(ask)).budgets[index]?.charge(cost, this.now);
    }
    this.#key(this.#group(ask)).lastChargedAt = this.now;
    for (const [index, cost] of costs.entries()) this.#weigh(this.#group(ask), index, cost, this.now);
  }

  #weigh(group: string | undefined, index: number, amount: number, at: number): void {
    if (!this.#options.perKey || this.#shareOfUnit[index] === undefined) return;
    const { weights } = this.#key(group);
    const weight = this.#shareOfUnit[index] * Math.exp((at - this.#startedAt) / this.#windowMs);
    weights[index] = Math.max(0, (weights[index] as number) + amount * weight);
  }

  #correct(hold: Hold, index: number, actual: number): void {
    const more = actual - (hold.costs[index] ?? 0);
    for (const account of [this.#common[index], this.#key(this.#group(hold)).budgets[index]]) {
      if (more > 0) account?.charge(more, this.now);
      else account?.refund(-more, hold.grantedAt);
    }
    this.#weigh(this.#group(hold), index, more, more > 0 ? this.now : hold.grantedAt);
    hold.costs[index] = actual;
  }

  #giveBack(id: number, how: "released" | "expired"): boolean {
    if (!this.holders.some((hold) => hold.id === id)) return false;
    this.holders = this.holders.filter((hold) => hold.id !== id);
    this.fates.set(id, how);
    this.#serve();
    return true;
  }

  #leave(id: number, fate: Fate): void {
    this.queue = this.queue.filter((ask) => ask.id !== id);
    this.fates.set(id, fate);
    this.#serve();
  }
}
