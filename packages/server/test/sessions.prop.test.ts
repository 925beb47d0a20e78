import { join } from "node:path";
import type { ServiceState } from "@slotkeeper/protocol";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Answer,
  type CallInit,
  type Fixture,
  newFolder,
  type Reply,
  startFixture,
  stopFixture,
} from "./service-fixture.ts";
import { accountOf, type LifeAccount, type Standings } from "./session-lives.ts";

/**
 * Whatever callers do, in any order and at the same time, and however often the service restarts on its journal
 * meanwhile:
 *   CALLERS1 No host has more slots in use than its limit, and no bucket more than its own.
 *   CALLERS2 A session gets at most one slot, for any callers and any number of calls.
 *   CALLERS3 When all callers have left, every counter is zero again, here and in the store.
 *   CALLERS4 Every session that was created has ended once, in the process that created it. If that was stopped before
 *     the store had the end, it ended in a later process or in none. It was counted there as its log shows.
 */

const LIMITS = { maxSlotPerHost: 2, maxSlotPerIp: 1 };
// Every run uses new plans. fast-check prints the seed and path of a failure.
// Short times: what a lost caller leaves behind ends by itself before the test gives up.
const QUEUE = {
  ...LIMITS,
  maxWaitersPerHost: 3,
  pollIntervalMs: 20,
  pollWindowMs: 60,
  collectMs: 15,
  maxWaitMs: 600,
  sessionIdleSeconds: 0.2,
  zombieTimeoutSeconds: 0.5,
  defaultGrantedCleanupDelay: 0.05,
};

/** For a call that hangs. On a busy machine all of it takes minutes. */
const PATIENCE_MS = 400_000;

const STEPS = [
  "acquire",
  "acquire-waiting",
  "acquire-repeated",
  "acquire-hang-up",
  "poll",
  "poll-twice",
  "poll-parallel",
  "poll-hang-up",
  "cancel",
  "release",
  "release-twice",
  "release-at-once",
  "release-anothers-end",
  "pause",
] as const;
const RESTARTS = ["restart", "restart-cut-off"] as const;
type Step = (typeof STEPS)[number] | (typeof RESTARTS)[number];

/** The service and its later processes on the same journal. Without a journal there are none. */
class Lives {
  readonly #journal: string | undefined;
  #fixture: Fixture;
  #restarting: Promise<void> | undefined;
  /** Of the processes that have ended. */
  readonly accounts: LifeAccount[] = [];
  readonly standings: Standings = new Map();

  private constructor(fixture: Fixture, journal: string | undefined) {
    this.#fixture = fixture;
    this.#journal = journal;
  }

  static async start(journal?: string): Promise<Lives> {
    return new Lives(await startFixture({ config: configOf(journal) }), journal);
  }

  get fixture(): Fixture {
    return this.#fixture;
  }

  get restarts(): number {
    return this.accounts.length;
  }

  /** Gracefully, or with every connection cut. */
  restart(isCutOff: boolean): Promise<void> {
    this.#restarting ??= this.#restart(isCutOff).finally(() => {
      this.#restarting = undefined;
    });
    return this.#restarting;
  }

  /** Repeats a call whose answer was lost in a restart: every call may be repeated. */
  async call(name: string, body: object, init?: CallInit): Promise<Reply> {
    for (;;) {
      await this.#restarting;
      const { restarts } = this;
      try {
        return await this.#fixture.call(name, body, init);
      } catch (error) {
        if (init?.signal?.aborted === true || (this.#restarting === undefined && this.restarts === restarts))
          throw error;
      }
    }
  }

  /** Of the current process. */
  account(): LifeAccount {
    return accountOf(this.#fixture, this.standings, this.restarts > 0);
  }

  async #restart(isCutOff: boolean): Promise<void> {
    if (this.#journal === undefined) throw new Error("Expected a journal to restart on");
    await stopFixture(this.#fixture, { graceMs: 0, deadlineMs: isCutOff ? 0 : 500 });
    const account = this.account();
    this.#fixture = await startFixture({ config: configOf(this.#journal) });
    this.accounts.push(account);
  }
}

/** With a journal, leases last much longer than a restart: a process that had lost them would grant their slots again. */
function configOf(journal: string | undefined): object {
  const logLevel = "debug";
  if (journal === undefined) return { logLevel, fairQueue: QUEUE };
  return { logLevel, fairQueue: { ...QUEUE, zombieTimeoutSeconds: 2 }, backend: { memory: { journal } } };
}

/** The slots that callers hold. A lease counts from its answer, for as long as it is certain to last. */
class Ledger {
  readonly #held = new Map<string, { host: string; bucket: string; sureUntil: number }>();
  readonly #slotOf = new Map<string, string>();
  readonly ended: string[] = [];

  granted(who: { host: string; bucket: string }, { slotToken, queryToken, leaseMs }: Answer, askedAt: number): void {
    const claims = JSON.parse(Buffer.from(queryToken.split(".")[2] ?? "", "base64url").toString()) as unknown[];
    // The id and the arrival: a `requestId` that is used again after the deadline of its session begins another
    // session.
    const session = JSON.stringify([claims[0], claims[3]]);
    expect(this.#slotOf.get(session) ?? slotToken).toBe(slotToken);
    this.#slotOf.set(session, slotToken);
    if (this.ended.includes(slotToken)) return;
    // A slot that was not fetched in time is granted again later, so only slots that a caller got count.
    this.#held.set(slotToken, { ...who, sureUntil: askedAt + leaseMs });
    const now = performance.now();
    const live = [...this.#held.values()].filter(({ host, sureUntil }) => host === who.host && sureUntil > now);
    expect(live.length).toBeLessThanOrEqual(LIMITS.maxSlotPerHost);
    const own = live.filter(({ bucket }) => bucket === who.bucket);
    expect(own.length).toBeLessThanOrEqual(LIMITS.maxSlotPerIp);
  }

  releasing(slotToken: string): void {
    this.#held.delete(slotToken);
    this.ended.push(slotToken);
  }
}

class Caller {
  readonly #lives: Lives;
  readonly #ledger: Ledger;
  readonly #who: { host: string; bucket: string };
  readonly #name: string;
  #queryToken: string | undefined;
  #slotToken: string | undefined;
  #requests = 0;

  constructor(lives: Lives, ledger: Ledger, who: { host: string; bucket: string }, name: string) {
    this.#lives = lives;
    this.#ledger = ledger;
    this.#who = who;
    this.#name = name;
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#step(step);
    if (this.#queryToken !== undefined) await this.#cancel(this.#queryToken);
  }

  async #step(step: Step): Promise<void> {
    const [query, slot] = [this.#queryToken, this.#slotToken];
    if (step.startsWith("acquire")) return this.#acquire(step);
    if (step === "restart" || step === "restart-cut-off") return this.#lives.restart(step === "restart-cut-off");
    if (step === "pause") return new Promise((resolve) => setTimeout(resolve, 5));
    if (step.startsWith("poll") && query !== undefined) return this.#poll(step, query);
    if (step === "cancel" && query !== undefined) return this.#cancel(query);
    if (step.startsWith("release") && slot !== undefined) return this.#release(step, slot);
  }

  async #acquire(step: Step): Promise<void> {
    if (this.#queryToken !== undefined) return;
    const requestId = `${this.#name}-${this.#requests++}`;
    const body = {
      hostname: this.#who.host,
      ipBucket: this.#who.bucket,
      requestId,
      waitMs: step === "acquire" ? 0 : 40,
    };
    if (step === "acquire-hang-up") {
      await this.#hangUp((signal) => this.#lives.call("acquire", body, { signal }));
      return;
    }
    const times = step === "acquire-repeated" ? 3 : 1;
    await Promise.all(Array.from({ length: times }, () => this.#ask(body)));
  }

  async #poll(step: Step, queryToken: string): Promise<void> {
    if (step === "poll-hang-up")
      return this.#hangUp((signal) => this.#lives.call("acquire", { queryToken }, { signal }));
    if (step === "poll-parallel") await Promise.all([1, 2, 3].map(() => this.#ask({ queryToken })));
    else await this.#ask({ queryToken });
    if (step === "poll-twice") await this.#ask({ queryToken });
  }

  async #ask(body: object): Promise<void> {
    const askedAt = performance.now();
    const { body: answer, status } = await this.#lives.call("acquire", body);
    expect(status).toBe(200);
    if (answer.result === "granted") {
      this.#ledger.granted(this.#who, answer, askedAt);
      this.#slotToken = answer.slotToken;
    }
    this.#queryToken = answer.result === "pending" || answer.result === "granted" ? answer.queryToken : undefined;
  }

  async #hangUp(call: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    const leaving = new AbortController();
    const left = call(leaving.signal).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 2));
    leaving.abort();
    await left;
  }

  async #cancel(queryToken: string): Promise<void> {
    if (this.#slotToken !== undefined) this.#ledger.releasing(this.#slotToken);
    const { body } = await this.#lives.call("cancel", { queryToken });
    expect(["canceled", "gone", "noop"]).toContain(body.result);
    this.#queryToken = undefined;
    this.#slotToken = undefined;
  }

  async #release(step: Step, slotToken: string): Promise<void> {
    const stale = step === "release-anothers-end" ? this.#ledger.ended.at(-1) : undefined;
    if (stale !== undefined) await this.#giveBack(stale);
    this.#ledger.releasing(slotToken);
    const times = step === "release" ? 1 : 2;
    if (step === "release-at-once") await Promise.all([1, 2].map(() => this.#giveBack(slotToken)));
    else for (let time = 0; time < times; time++) await this.#giveBack(slotToken);
    this.#slotToken = undefined;
    this.#queryToken = undefined;
  }

  #giveBack(slotToken: string): Promise<Reply> {
    return this.#lives.call("release", { slotToken });
  }
}

async function stateOf(fixture: Fixture): Promise<ServiceState> {
  return JSON.parse((await fixture.request("GET", "/api/v0/state")).text) as ServiceState;
}

/** The counters that are not zero, by name. */
async function leftovers(fixture: Fixture): Promise<object> {
  const { sessions, unsent, hosts } = await stateOf(fixture);
  const left = hosts.map(({ inFlight, pending, slots, sessions: waiting, buckets }) => ({
    inFlight,
    pending,
    slots: slots.length,
    waiting: waiting.length,
    buckets: buckets.filter((bucket) => bucket.inFlight > 0 || bucket.waiting > 0).length,
  }));
  const sum = (key: keyof (typeof left)[number]) => left.reduce((total, host) => total + host[key], 0);
  return {
    sessions: sessions["total"],
    unsent,
    inFlight: sum("inFlight"),
    pending: sum("pending"),
    slots: sum("slots"),
    waiting: sum("waiting"),
    buckets: sum("buckets"),
  };
}

const ZERO = { sessions: 0, unsent: 0, inFlight: 0, pending: 0, slots: 0, waiting: 0, buckets: 0 };

const callersWho = (steps: readonly Step[]) =>
  fc.array(
    fc.record({
      host: fc.constantFrom("one.example", "two.example"),
      bucket: fc.constantFrom("a", "b", "c"),
      steps: fc.array(fc.constantFrom(...steps), { minLength: 3, maxLength: 12 }),
    }),
    { minLength: 2, maxLength: 7 },
  );

type Plan = ReturnType<typeof callersWho> extends fc.Arbitrary<infer T> ? T : never;

async function live(lives: Lives, plan: Plan): Promise<void> {
  const ledger = new Ledger();
  await Promise.all(
    plan.map(({ host, bucket, steps }, index) => new Caller(lives, ledger, { host, bucket }, `c${index}`).run(steps)),
  );
}

/** Ends of sessions are kept for some seconds, so all plans are checked at once. */
async function nothingIsLeft(lives: Lives, plan: Plan): Promise<void> {
  const about = JSON.stringify(plan);
  await expect.poll(() => leftovers(lives.fixture), { timeout: 60_000, interval: 200, message: about }).toEqual(ZERO);
  const last = lives.account();
  const faults = [...lives.accounts, last].flatMap((account) => account.faults);
  expect(faults, about).toEqual([]);
  expect(last, about).toMatchObject({ open: 0, ended: last.created });
  for (const { created, ended, open } of lives.accounts) expect(ended + open, about).toBe(created);
  await stopFixture(lives.fixture);
}

/** Returns the number of restarts. */
async function liveAll(steps: readonly Step[], numRuns: number, start: () => Promise<Lives>): Promise<number> {
  const all: { readonly lives: Lives; readonly plan: Plan }[] = [];
  const property = fc.asyncProperty(callersWho(steps), async (plan) => {
    const lives = await start();
    all.push({ lives, plan });
    await live(lives, plan);
  });
  await fc.assert(property, { numRuns, endOnFailure: true });
  await Promise.all(all.map(({ lives, plan }) => nothingIsLeft(lives, plan)));
  return all.reduce((sum, { lives }) => sum + lives.restarts, 0);
}

describe("sessions over real HTTP", () => {
  it("end exactly once whatever callers do, break no limit and leave nothing behind (CALLERS1–CALLERS4)", {
    timeout: PATIENCE_MS,
  }, async () => {
    expect(await liveAll(STEPS, 25, () => Lives.start())).toBe(0);
  });

  it("do the same through restarts on the journal, graceful and not (CALLERS1–CALLERS4)", {
    timeout: PATIENCE_MS,
  }, async () => {
    // Usually slots are held when it happens.
    const steps = [...STEPS, ...Array<Step>(12).fill("acquire-waiting"), ...RESTARTS, ...RESTARTS];
    const restarts = await liveAll(steps, 20, () => Lives.start(join(newFolder(), "journal")));
    // Of about 90: every run uses new plans.
    expect(restarts).toBeGreaterThan(0);
  });
});
