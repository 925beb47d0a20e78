import type { FairQueueConfig } from "@slotkeeper/protocol";
import { type BookRecord, FairQueue, MemoryStore } from "@slotkeeper/queue";
import { drained, VirtualClock } from "@slotkeeper/testkit/simulator";
import * as fc from "fast-check";
import { expect, test } from "vitest";

/** LIMITS1 and LIMITS2 of `limits.ts`, in every order of calls. */

const HOST = { host: "7a", hostname: "api.slow.example" };
const DEFAULT_SLOTS = 5;
/** An arrival that finds no free slot is decided with the next input, or after at most 100 ms (CYCLE6). */
const DECIDED_MS = 110;

interface Step {
  readonly at: number;
  readonly call: "acquire" | "report" | "release" | "reload";
  /** The caller sends the name and not only the hash. */
  readonly isNamed: boolean;
  /** With `reload`: the slots of the pattern. */
  readonly slots: number;
}

const steps = (instances: number): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.record({
      at: fc.nat({ max: instances - 1 }),
      call: fc.constantFrom<Step["call"][]>("acquire", "acquire", "report", "release", "reload"),
      isNamed: fc.boolean(),
      slots: fc.constantFrom(1, 2, 7),
    }),
    { minLength: 1, maxLength: 20 },
  );

/** The limits that the host must have after each step. */
class Expected {
  readonly #loads: { readonly at: number; readonly slots: number }[];
  #set: { readonly at: number; readonly slots: number } | undefined;
  isNamed = false;

  constructor(loads: { readonly at: number; readonly slots: number }[]) {
    this.#loads = loads;
  }

  reload(instance: number, at: number, slots: number): void {
    this.#loads[instance] = { at, slots };
  }

  /** The instance makes a decision about the host. */
  decide(instance: number, isNamed: boolean, isInUse: boolean): void {
    const load = this.#loads[instance];
    const isFirst = (isNamed && !this.isNamed) || this.#set === undefined;
    this.isNamed ||= isNamed;
    const isLater = load !== undefined && load.at > (this.#set?.at ?? 0);
    // At a host that is not in use, limits that stay the same are not written again.
    const isChange = this.isNamed && load?.slots !== this.slots;
    if (isFirst || (isLater && (isChange || isInUse))) this.#set = load;
  }

  get slots(): number | undefined {
    return this.isNamed ? this.#set?.slots : this.#set && DEFAULT_SLOTS;
  }
}

const configOf = (slots: number): FairQueueConfig => ({
  maxSlotPerHost: DEFAULT_SLOTS,
  maxSlotPerIp: -1,
  hosts: { "*.slow.example": { maxSlotPerHost: slots } },
});

async function run(history: readonly Step[], instances: number): Promise<void> {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock, isShared: instances > 1 });
  let ids = 0;
  const queues = Array.from({ length: instances }, (_, at) => {
    const names = { newSessionId: () => `s${ids++}`, newSecret: () => `x${ids++}`, instance: `i${at}` };
    return new FairQueue({ store, clock, config: configOf(2), ...names });
  });
  await Promise.all(queues.map((queue) => queue.start()));
  const expected = new Expected(queues.map(() => ({ at: clock.now(), slots: 2 })));
  const tokens: string[] = [];
  const image = async () => (await store.peek([HOST.host])).get(HOST.host);
  const records = async () => [...((await image())?.records ?? [])];
  const held = async () => (await records()).filter(({ kind }) => kind === "lease").length;
  for (const { at, call, isNamed, slots } of history) {
    const queue = queues[at] as FairQueue;
    const named = isNamed ? HOST : { host: HOST.host };
    const before = await held();
    const isInUse = (await records()).some(({ kind }) => kind === "lease" || kind === "waiter");
    await clock.run(3);
    if (call === "acquire") {
      const answer = queue.begin({ ...named, waitMs: 1 });
      await clock.run(DECIDED_MS);
      const got = await answer;
      if (got.result === "granted") tokens.push(got.slotToken);
      expected.decide(at, isNamed, isInUse);
    } else if (call === "report") {
      await queue.report({ ...named, status: 200 });
      expected.decide(at, isNamed, isInUse);
    } else if (call === "release") {
      const slotToken = tokens.pop();
      if (slotToken === undefined) continue;
      queue.release({ slotToken });
      await clock.run(DECIDED_MS);
      expected.decide(at, false, isInUse);
    } else {
      const isOpen = [...queue.hostKeys()].length > 0;
      queue.reconfigure(configOf(slots));
      expected.reload(at, clock.now(), slots);
      await clock.run(DECIDED_MS);
      if (isOpen) expected.decide(at, false, isInUse);
    }
    // A commit notifies the other instances with waiters at the host, and they decide with their own limits.
    for (const other of waitingAt(await records())) if (other !== at) expected.decide(other, false, true);
    expect((await image())?.head.slots, JSON.stringify(history)).toBe(expected.slots);
    expect(await held()).toBeLessThanOrEqual(Math.max(before, expected.slots ?? 0));
  }
  for (const queue of queues) queue.close();
  await drained();
}

const waitingAt = (records: readonly BookRecord[]): ReadonlySet<number> =>
  new Set(records.flatMap((record) => (record.kind === "waiter" ? Number(record.instance.slice(1)) : [])));

test("a host has the limits of its name as soon as a caller has sent it, in any order of calls", async () => {
  const queue = [
    { at: 0, call: "report", isNamed: false, slots: 2 },
    ...Array.from({ length: 5 }, () => ({ at: 0, call: "acquire", isNamed: true, slots: 2 }) as const),
  ] as const;
  await run(queue, 1);
});

test("a reload that changes nothing keeps an older configuration of another instance out", async () => {
  const step = { isNamed: false, slots: 2 } as const;
  const history = [
    { ...step, at: 1, call: "acquire", isNamed: true },
    { ...step, at: 1, call: "acquire" },
    { ...step, at: 0, call: "reload", slots: 7 },
    { ...step, at: 1, call: "reload" },
    { ...step, at: 0, call: "acquire" },
  ] as const;
  await run(history, 3);
});

test.each([1, 3])("LIMITS1 and LIMITS2 hold in every order of calls to %i instances", async (n) => {
  await fc.assert(
    fc.asyncProperty(steps(n), (history) => run(history, n)),
    { numRuns: 300 },
  );
});
