import type { GrantedAnswer, PollAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { FairQueue } from "@slotkeeper/queue";
import type { CallName } from "../history/line.ts";
import type { SimInstance } from "./sim-instance.ts";
import type { World } from "./world.ts";

/**
 * A caller: it asks, polls, uses the slot while its lease lasts, and releases it. If an answer does not arrive, it
 * tries again, mostly elsewhere. It may cancel, and it may disappear at any point. It counts its lease from the moment
 * of its call, so it never uses a slot that a correct service has taken back.
 */
export class SimClient {
  readonly #world: World;
  readonly #host: string;
  readonly #bucket: string;
  #home: SimInstance | undefined;
  #isGone = false;

  constructor(world: World, host: string, bucket: string) {
    this.#world = world;
    this.#host = host;
    this.#bucket = bucket;
  }

  async live(): Promise<void> {
    const { random } = this.#world;
    while (!this.#world.isClosing && !this.#isGone) {
      await this.#world.pause(random.int(0, 1500));
      await this.#once();
    }
  }

  async #once(): Promise<void> {
    const session = await this.#begin();
    if (session === undefined) return;
    const granted = await this.#wait(session);
    if (granted === undefined || this.#vanishes()) return;
    await this.#use(granted.answer, granted.askedAt);
    if (this.#vanishes()) return;
    if (this.#world.random.chance(this.#world.plan.cancels)) await this.#cancel(session);
    else await this.#release(granted.answer);
    if (this.#world.random.chance(0.2)) await this.#poll(session);
  }

  async #begin(): Promise<SessionClaims | undefined> {
    const { random } = this.#world;
    const id = this.#world.newId();
    const identity = random.chance(0.5) ? { requestId: id } : { sessionId: id };
    const named = this.#class();
    const own = {
      bucket: this.#bucket,
      class: named,
      width: this.#width(named),
      ...this.#cost(),
      ...this.#keys(),
      ...identity,
      ...this.#window(identity),
    };
    const request = { host: this.#host, hostname: this.#host, ...own };
    for (let attempt = 0; attempt < 3; attempt++) {
      // With either name, the same id gives the same session.
      const { throttleWindowMs } = request;
      const window = throttleWindowMs === undefined ? {} : { throttleTimeWindowSeconds: throttleWindowMs / 1000 };
      const { width, cost, keys } = request;
      const demand = { width, cost, keys, class: named };
      const ask = { hostname: this.#host, ipBucket: this.#bucket, requestId: id, ...demand, ...window };
      const answer = await this.#call("acquire", ask, (queue) => queue.begin(request));
      if (this.#vanishes()) return undefined;
      if (answer?.result === "pending") return answer.session;
      if (answer !== undefined) return undefined;
    }
    return undefined;
  }

  /** At a host with classes, one of them or none. */
  #class(): string | undefined {
    const { ofClasses, plan } = this.#world;
    const names = Object.keys(plan.config.classes ?? {});
    return names.length === 0 ? undefined : ofClasses.pick([undefined, ...names]);
  }

  /** At most what the limits can ever allow. */
  #width(named = "default"): number {
    const { random, plan } = this.#world;
    const { maxSlotPerHost = 1, maxSlotPerIp = 0 } = plan.config;
    const isLimited = this.#bucket !== "" && maxSlotPerIp > 0;
    const ofKeys = Object.values(plan.config.keys ?? {}).flatMap((key) => [key, ...Object.values(key.for ?? {})]);
    const most = Math.min(
      isLimited ? maxSlotPerIp : maxSlotPerHost,
      maxSlotPerHost,
      plan.config.classes?.[named]?.ceiling ?? maxSlotPerHost,
      ...ofKeys.map(({ slots = maxSlotPerHost }) => slots),
    );
    return random.chance(plan.wide) ? random.int(1, most) : 1;
  }

  #cost(): { readonly cost?: { readonly tokens: number } } {
    const { random, plan } = this.#world;
    const { budgets, keys } = plan.config;
    const limits = [budgets, keys?.["tenant"]?.budgets].flatMap((one) => one?.["tokens"]?.limit ?? []);
    if (limits.length === 0 || random.chance(0.3)) return {};
    return { cost: { tokens: random.int(0, Math.min(...limits)) } };
  }

  /** Some requests have no keys. */
  #keys(): { readonly keys?: { readonly [name: string]: string } } {
    const { random, plan } = this.#world;
    const names = Object.keys(plan.config.keys ?? {});
    if (names.length === 0 || random.chance(0.2)) return {};
    return { keys: Object.fromEntries(names.map((name) => [name, `${name[0]}${random.int(0, 2)}`])) };
  }

  /** Some sessions have their own window for an open breaker. */
  #window({ sessionId }: { readonly sessionId?: string }): { readonly throttleWindowMs?: number } {
    const { random, invariants } = this.#world;
    if (sessionId === undefined || !random.chance(0.3)) return {};
    const throttleWindowMs = random.pick([300, 5_000, 60_000]);
    invariants.uses.asked(sessionId, throttleWindowMs);
    return { throttleWindowMs };
  }

  async #wait(session: SessionClaims): Promise<{ answer: GrantedAnswer; askedAt: number } | undefined> {
    const { random, plan, clock } = this.#world;
    for (let lost = 0; lost < 8; ) {
      if (random.chance(plan.cancels)) {
        await this.#cancel(session);
        return undefined;
      }
      const askedAt = clock.now();
      const answer = await this.#poll(session);
      if (this.#vanishes()) return undefined;
      if (answer?.result === "granted") return { answer, askedAt };
      if (answer !== undefined && answer.result !== "pending") return undefined;
      if (answer === undefined) lost++;
      if (random.chance(0.1)) await this.#world.pause(random.int(0, 3_000));
    }
    return undefined;
  }

  /** An answer of an instance is checked even if it does not arrive. */
  #poll(session: SessionClaims): Promise<PollAnswer | undefined> {
    const { clock, invariants } = this.#world;
    // The network may deliver the poll twice. The second one may wait for what the store answers to the first.
    const askedAt = clock.now();
    return this.#call("acquire", { queryToken: tokenOf(session) }, async (queue, signal) => {
      const answer = await queue.poll(session, { signal });
      if (answer.result === "granted") invariants.onGrantAnswered(answer, askedAt);
      return answer;
    });
  }

  /** Holds the slot for a while, and renews the lease if it would end before. */
  async #use(answer: GrantedAnswer, askedAt: number): Promise<void> {
    const { random, clock } = this.#world;
    const stopAt = clock.now() + random.pick([0, 50, 300, 1_000, 6_000]);
    let leaseUntil = askedAt + answer.leaseMs;
    const held = this.#world.holds.start(answer, this.#host, this.#bucket, leaseUntil);
    while (clock.now() < Math.min(stopAt, leaseUntil)) {
      held.until = leaseUntil;
      await this.#world.pause(Math.max(1, Math.min(stopAt, leaseUntil) - clock.now()) / 2);
      if (leaseUntil - clock.now() > answer.leaseMs / 2 || clock.now() >= leaseUntil) continue;
      const renewedAt = clock.now();
      const { slotToken } = answer;
      const renewed = await this.#call("renew", { slotToken }, (queue) => renew(queue, slotToken), 500);
      if (renewed?.leaseMs !== undefined) leaseUntil = renewedAt + renewed.leaseMs;
    }
    this.#world.holds.stop(held);
  }

  async #release({ slotToken }: GrantedAnswer): Promise<void> {
    const { random, plan, clock, invariants } = this.#world;
    const status = random.chance(plan.upstreamErrors) ? 503 : 200;
    const hitUpstreamAtMs = clock.now() - random.int(-500, 2_000);
    const used = plan.config.budgets === undefined ? undefined : { tokens: random.int(0, 30) };
    invariants.budgets.uses(slotToken, used);
    for (let attempt = 0; attempt < 3; attempt++) {
      const input = { slotToken, status, hitUpstreamAtMs, callerNow: clock.now(), used };
      const reply = { result: "ok", isAccepted: false };
      const release = (queue: FairQueue) => {
        queue.release(input, () => (reply.isAccepted = true));
        return reply;
      };
      const ask = { slotToken, status, hitUpstreamAtMs, used, now: input.callerNow };
      const answer = await this.#call("release", ask, release, 1_000);
      if (answer !== undefined) return;
    }
  }

  #vanishes(): boolean {
    this.#isGone ||= this.#world.random.chance(this.#world.plan.clientCrashes / 4);
    return this.#isGone;
  }

  async #cancel(session: SessionClaims): Promise<void> {
    await this.#call("cancel", { queryToken: tokenOf(session) }, (queue) => ({ result: queue.cancel(session) }));
  }

  async #call<T extends object>(
    name: CallName,
    ask: object,
    act: (queue: FairQueue, signal: AbortSignal) => Promise<T> | T,
    timeoutMs = 8_000,
  ): Promise<T | undefined> {
    const { network, plan, recorder } = this.#world;
    const instance = (plan.routing === "sticky" ? this.#home : undefined) ?? this.#world.anyInstance();
    const open = recorder.sent(name, ask);
    const answer = await network.call(instance.gate, (signal) => act(instance.queue, signal), timeoutMs);
    this.#home = answer === undefined ? undefined : instance;
    // The service answers a release when it is accepted. This client does not wait for that.
    if (answer === undefined || ("isAccepted" in answer && answer.isAccepted === false)) open.gaveUp();
    else open.answered("status" in answer ? (answer.status as number) : 200, onWire(answer));
    return answer;
  }
}

/** The query token of the simulation. The same id with another arrival is another session. */
function tokenOf({ id, arrivedAt }: SessionClaims): string {
  return `${id} of ${arrivedAt}`;
}

function onWire(answer: object): object {
  if ("session" in answer) return { ...answer, queryToken: tokenOf(answer.session as SessionClaims) };
  if (!("retryAfterMs" in answer)) return answer;
  return { ...answer, throttleRetryAfter: Math.max(1, Math.ceil((answer.retryAfterMs as number) / 1000)) };
}

async function renew(queue: FairQueue, slotToken: string): Promise<{ leaseMs?: number; status?: number }> {
  return (await queue.renew(slotToken)) ?? { status: 410 };
}
