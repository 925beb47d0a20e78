/** What the suites of the limiter share: a clock that stands still, and a guard that nothing is left. */
import { Limiter, type LimiterAcquireOptions, type LimiterOptions, type LimiterSlot } from "slotkeeper/limiter";
import { FakeClock, LeakGuard, settled } from "slotkeeper/testing";
import { afterEach, beforeEach } from "vitest";
import { type Outcome, outcome } from "../outcome.ts";

class LimiterWorld {
  readonly clock = new FakeClock(1_000_000);
  readonly guard = new LeakGuard(this.clock);
  /** Labels of those who were granted, in order, with the time since the start. */
  readonly grants: string[] = [];

  limiter<B extends string = string>(options: LimiterOptions<B>): Limiter<B> {
    return this.guard.track(new Limiter<B>({ clock: this.clock, ...options }));
  }

  /** Asks and notes the grant. */
  ask(limiter: Limiter, label: string, options?: LimiterAcquireOptions): Outcome<LimiterSlot> {
    return outcome(
      limiter.acquire(options).then((slot) => {
        this.grants.push(`${label} ${this.clock.now() - 1_000_000}`);
        return slot;
      }),
    );
  }

  /** As `ask`, and releases at once. */
  pass(limiter: Limiter, label: string, options?: LimiterAcquireOptions): void {
    const refused = (): void => {};
    limiter.acquire(options).then((slot) => {
      this.grants.push(`${label} ${this.clock.now() - 1_000_000}`);
      slot.release();
    }, refused);
  }

  /** Who was granted by now. */
  async granted(): Promise<string> {
    await settled();
    return this.grants.map((grant) => grant.split(" ")[0]).join(" ");
  }
}

/** The world of the test that is running; afterwards nothing may be left in it. */
export function useLimiterWorld(): () => LimiterWorld {
  let world = new LimiterWorld();
  beforeEach(() => {
    world = new LimiterWorld();
  });
  afterEach(() => world.guard.check());
  return () => world;
}
