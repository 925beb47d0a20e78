/** Random lives of uploads: who asks, gives up, releases and sweeps when, and what must hold at every step of it. */
import * as fc from "fast-check";
import { Semaphore, type Slot } from "slotkeeper";
import { type FakeClock, settled } from "slotkeeper/testing";

export interface UploadSlots {
  acquireUpload(user: string, options?: { signal?: AbortSignal; timeoutMs?: number }): Promise<Slot>;
  sweep(idleMs?: number): unknown;
}

export type Step =
  | { readonly act: "acquire"; readonly user: string; readonly timeoutMs: number | undefined }
  | { readonly act: "release" | "abort"; readonly which: number }
  | { readonly act: "sweep"; readonly idleMs: number }
  | { readonly act: "wait"; readonly ms: number }
  /** Lets a number of promise reactions run: the places where others may come in between. */
  | { readonly act: "turns"; readonly count: number };

const which = fc.nat({ max: 20 });

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        act: fc.constant("acquire" as const),
        user: fc.constantFrom("ann", "bob", ""),
        timeoutMs: fc.option(fc.constantFrom(0, 5, 50), { nil: undefined }),
      }),
    },
    { weight: 3, arbitrary: fc.record({ act: fc.constant("release" as const), which }) },
    { weight: 1, arbitrary: fc.record({ act: fc.constant("abort" as const), which }) },
    { weight: 3, arbitrary: fc.record({ act: fc.constant("sweep" as const), idleMs: fc.constantFrom(0, 0, 10) }) },
    { weight: 1, arbitrary: fc.record({ act: fc.constant("wait" as const), ms: fc.constantFrom(1, 5, 20) }) },
    { weight: 3, arbitrary: fc.record({ act: fc.constant("turns" as const), count: fc.integer({ min: 1, max: 6 }) }) },
  ),
  { minLength: 1, maxLength: 60 },
);

interface Ask {
  readonly user: string;
  readonly stop: AbortController;
  slot: Slot | undefined;
  isOver: boolean;
}

/** Lives through the steps and checks that no limit is ever broken; in the end, that every caller got an answer. */
export class UploadLife {
  readonly #slots: UploadSlots;
  readonly #clock: FakeClock;
  readonly #limits: { readonly max: number; readonly perUser: number };
  readonly #asks: Ask[] = [];
  #violation: Error | undefined = undefined;

  constructor(slots: UploadSlots, clock: FakeClock, limits: { max: number; perUser: number }) {
    this.#slots = slots;
    this.#clock = clock;
    this.#limits = limits;
  }

  async live(steps: readonly Step[]): Promise<void> {
    for (const step of steps) {
      await this.#take(step);
      this.#check();
      if (this.#violation !== undefined) throw this.#violation;
    }
    await this.#end();
    if (this.#violation !== undefined) throw this.#violation;
  }

  get #held(): Ask[] {
    return this.#asks.filter(({ slot }) => slot?.released === false);
  }

  async #take(step: Step): Promise<void> {
    switch (step.act) {
      case "acquire":
        return this.#ask(step.user, step.timeoutMs);
      case "release":
        return void pick(this.#held, step.which)?.slot?.release();
      case "abort":
        return pick(this.#asks, step.which)?.stop.abort();
      case "sweep":
        return void this.#slots.sweep(step.idleMs);
      case "wait":
        return this.#clock.advance(step.ms);
      case "turns":
        return settled(step.count);
    }
  }

  #ask(user: string, timeoutMs: number | undefined): void {
    const ask: Ask = { user, stop: new AbortController(), slot: undefined, isOver: false };
    const { signal } = ask.stop;
    this.#asks.push(ask);
    const asked = this.#slots.acquireUpload(user, timeoutMs === undefined ? { signal } : { signal, timeoutMs });
    asked.then(
      (slot) => {
        ask.slot = slot;
        ask.isOver = true;
        this.#check();
      },
      () => {
        ask.isOver = true;
      },
    );
  }

  /** Also called in the middle of a step, where an error would be lost: so it is kept. */
  #check(): void {
    const held = this.#held;
    const { max, perUser } = this.#limits;
    if (held.length > max) this.#violation ??= new Error(`${held.length} uploads where ${max} are allowed`);
    for (const { user } of held) {
      const count = held.filter((ask) => ask.user === user).length;
      if (count > perUser) this.#violation ??= new Error(`${count} uploads of "${user}" where ${perUser} are allowed`);
    }
  }

  /** Holders release until there is none: by then every caller must have been served. */
  async #end(): Promise<void> {
    await settled();
    for (let held = this.#held; held.length > 0; held = this.#held) {
      for (const { slot } of held) slot?.release();
      await settled();
      this.#check();
    }
    const left = this.#asks.filter(({ isOver }) => !isOver).length;
    if (left > 0) throw new Error(`${left} asked and were never answered`);
  }
}

function pick<T>(items: readonly T[], index: number): T | undefined {
  return items.length === 0 ? undefined : items[index % items.length];
}

/**
 * The control: two tiers as they are often written, a map of semaphores that is swept by the time of last use. A user
 * who is swept while holding, waiting or between look-up and acquire gets a second semaphore, and so a second upload.
 */
export class NaiveUploads implements UploadSlots {
  readonly #global: Semaphore;
  readonly #users = new Map<string, { semaphore: Semaphore; usedAt: number }>();
  readonly #clock: FakeClock;

  constructor(max: number, clock: FakeClock) {
    this.#global = new Semaphore(max, { clock });
    this.#clock = clock;
  }

  async acquireUpload(user: string, options?: { signal?: AbortSignal; timeoutMs?: number }): Promise<Slot> {
    const known = this.#users.get(user) ?? { semaphore: new Semaphore(1, { clock: this.#clock }), usedAt: 0 };
    known.usedAt = this.#clock.now();
    this.#users.set(user, known);
    const first = await known.semaphore.acquire(options);
    const slot = await this.#global.acquire(options).catch((error: unknown) => {
      first.release();
      throw error;
    });
    return new Proxy(slot, {
      get: (target, name) => {
        if (name !== "release") return Reflect.get(target, name, target) as unknown;
        return () => first.release() && target.release();
      },
    });
  }

  sweep(idleMs = 0): void {
    for (const [user, { usedAt }] of this.#users) {
      if (usedAt <= this.#clock.now() - idleMs) this.#users.delete(user);
    }
  }
}
