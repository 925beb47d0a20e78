import type { BeginAnswer, SessionClaims } from "@slotkeeper/protocol";
import type { FairQueue } from "@slotkeeper/queue";
import { Random } from "@slotkeeper/testkit/random";
import { expect, it } from "vitest";
import { type Delays, SlowWorld } from "./slow-world.ts";

/**
 * ONCE1 and ONCE2 of `granted-once.test.ts` in random histories. Calls to the store take longer than a session lives,
 *   or are lost on the way there or back, and processes are paused. Clients follow, abandon, cancel and repeat their
 *   sessions, and poll at other instances, right up to their deadlines.
 *
 * ONCE2 holds while a session stays at one instance. If a client polls at a second instance, it may know its slot from
 *   the first. The second instance cannot know that, so only the client can give the slot back. If it does not know the
 *   slot, that costs a lease.
 */

const SEEDS = 2_000;
const SESSIONS = 12;

class History {
  readonly #random: Random;
  readonly #world: SlowWorld;
  readonly #slotOf = new Map<string, string>();
  readonly #givenBack = new Set<string>();
  readonly faults: string[] = [];

  readonly #isAtOne: boolean;

  constructor(seed: number, isAtOne: boolean, mostEnds: number) {
    this.#isAtOne = isAtOne;
    this.#random = new Random(seed);
    const random = this.#random;
    const config = {
      maxSlotPerHost: random.int(1, 2),
      maxSlotPerIp: 0,
      maxWaitMs: random.int(200, 1_500),
      pollIntervalMs: 100,
      pollWindowMs: 300,
      collectMs: 50,
      sessionIdleSeconds: 1,
      defaultGrantedCleanupDelay: 0.1,
      breaker: { consecutiveErrors: 2, openSeconds: 0.3 },
    };
    this.#world = new SlowWorld(config, isAtOne ? 1 : 2, mostEnds);
  }

  /** Returns what was wrong. */
  async run(): Promise<readonly string[]> {
    const world = this.#world;
    world.delays = () => this.#delays();
    for (let at = 0; at < SESSIONS; at++) {
      void this.#live(`s${this.#isAtOne ? at : this.#random.int(0, SESSIONS)}`);
      await world.run(this.#random.int(0, 400));
      if (this.#random.chance(0.2)) world.standStill(this.#random.int(0, 3_000));
    }
    world.delays = () => ({});
    await world.run(60_000);
    if (!this.#isAtOne) return this.faults;
    const known = new Set(this.#slotOf.values());
    for (const slot of await world.held()) {
      if (!known.has(slot)) this.faults.push(`ONCE2 no client got ${slot}`);
      if (this.#givenBack.has(slot)) this.faults.push(`ONCE2 ${slot} was given back`);
    }
    return this.faults;
  }

  async #live(sessionId: string): Promise<void> {
    const random = this.#random;
    const first = { host: "h", bucket: `b${random.int(0, 2)}`, sessionId, waitMs: random.pick([0, 50, 300]) };
    let answer = this.#checked(await this.#queue().begin(first));
    while (answer.result === "pending" && random.chance(0.9)) {
      await this.#pause(random.pick([0, 0, 20, 200]));
      answer = this.#checked(await this.#queue().poll(answer.session));
    }
    if (answer.result === "pending" && random.chance(0.5)) this.#queue().cancel(answer.session);
    if (answer.result !== "granted" || random.chance(0.2)) return;
    await this.#pause(random.pick([0, 30, 500]));
    const { slotToken } = answer;
    if (random.chance(0.2)) {
      if (this.#queue().cancel(answer.session) === "canceled") this.#givenBack.add(slotToken);
    } else {
      this.#givenBack.add(slotToken);
      this.#queue().release({ slotToken, status: random.chance(0.2) ? 503 : 200 });
    }
    // The client has its answer and polls again at the last moment. Then the process is paused.
    await this.#pause(answer.session.deadlineAt - this.#world.clock.now() - random.int(0, 20));
    const late = this.#queue().poll(answer.session);
    if (random.chance(0.5)) this.#world.standStill(random.int(0, 3_000));
    this.#checked(await late);
  }

  #checked(answer: BeginAnswer): BeginAnswer {
    if (answer.result !== "granted") return answer;
    const session = nameOf(answer.session);
    const before = this.#slotOf.get(session) ?? answer.slotToken;
    if (before !== answer.slotToken) this.faults.push(`ONCE1 ${session} got ${before} and ${answer.slotToken}`);
    this.#slotOf.set(session, answer.slotToken);
    return answer;
  }

  #delays(): Delays {
    const slow = () => (this.#random.chance(0.25) ? this.#random.int(0, 5_000) : this.#random.int(0, 5));
    return {
      beforeMs: slow(),
      afterMs: slow(),
      isLost: this.#random.chance(0.05),
      isAnswerLost: this.#random.chance(0.1),
    };
  }

  #queue(): FairQueue {
    return this.#random.pick(this.#world.queues);
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.clock.setTimer(resolve, ms));
  }
}

/** The id and the arrival: an id that is used again after its deadline begins another session. */
function nameOf({ id, arrivedAt }: SessionClaims): string {
  return `${id} of ${arrivedAt}`;
}

async function faultsOf(isAtOne: boolean, mostEnds = 1_000): Promise<string[]> {
  const faults: string[] = [];
  for (let seed = 1; seed <= SEEDS; seed++) {
    for (const fault of await new History(seed, isAtOne, mostEnds).run()) faults.push(`seed ${seed}: ${fault}`);
  }
  return faults;
}

it("a session gets at most one slot, and every slot that is held is known to its client", async () => {
  expect(await faultsOf(true)).toEqual([]);
});

it("a session gets at most one slot at all instances together, even if answers are lost", async () => {
  expect(await faultsOf(false)).toEqual([]);
});

it("the same holds if a host keeps one end of a session only", async () => {
  expect([await faultsOf(true, 1), await faultsOf(false, 1)]).toEqual([[], []]);
});
