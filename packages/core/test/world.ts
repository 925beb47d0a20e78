/** Shared by most suites: a fake clock, semaphores and pools that use it, and a guard that checks that nothing is left. */
import {
  type KeyedOptions,
  KeyedSemaphore,
  Semaphore,
  type SemaphoreOptions,
  SemaphoreRegistry,
  SlotPool,
  type SlotPoolOptions,
} from "slotkeeper";
import { FakeClock, LeakGuard } from "slotkeeper/testing";
import { afterEach, beforeEach } from "vitest";

class World {
  readonly clock = new FakeClock(1_000_000);
  readonly guard = new LeakGuard(this.clock);
  /** A registry for each test, so that tests do not share names. */
  readonly registry = new SemaphoreRegistry({ clock: this.clock });

  semaphore(slots: number, options: SemaphoreOptions = {}): Semaphore {
    return this.guard.track(new Semaphore(slots, { clock: this.clock, registry: this.registry, ...options }));
  }

  keyed<K = string>(slotsPerKey: number, options: KeyedOptions = {}): KeyedSemaphore<K> {
    return this.guard.track(new KeyedSemaphore<K>(slotsPerKey, { clock: this.clock, ...options }));
  }

  pool<K = string>(options: SlotPoolOptions): SlotPool<K> {
    return this.guard.track(new SlotPool<K>({ clock: this.clock, ...options }));
  }
}

/** The world of the running test. After the test, nothing may be left in it. */
export function useWorld(): () => World {
  let world = new World();
  beforeEach(() => {
    world = new World();
  });
  afterEach(() => world.guard.check());
  return () => world;
}
