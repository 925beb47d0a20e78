/** What the suites of transfers share: a clock that stands still, and a guard that nothing is left behind. */
import { FakeClock, LeakGuard } from "slotkeeper/testing";
import { MediaSlots, type MediaSlotsConfig, TransferSlots, type TransferSlotsOptions } from "slotkeeper/transfers";
import { afterEach, beforeEach } from "vitest";

class TransferWorld {
  readonly clock = new FakeClock(1_000_000);
  readonly guard = new LeakGuard(this.clock);
  readonly #toClose: { close(): void }[] = [];

  transfers(options: TransferSlotsOptions = {}): TransferSlots {
    const slots = new TransferSlots({ clock: this.clock, ...options });
    this.#toClose.push(slots);
    this.guard.track({
      name: "transfers",
      waiting: 0,
      get inUse() {
        const { downloadsActive, uploadsActive } = slots.stats();
        return downloadsActive + uploadsActive;
      },
    });
    return slots;
  }

  media(config: MediaSlotsConfig): MediaSlots {
    const slots = new MediaSlots({ clock: this.clock, ...config });
    const use = () => Object.values(slots.config().use);
    this.#toClose.push(slots);
    this.guard.track({
      name: "media",
      get inUse() {
        return use().reduce((sum, { inUse }) => sum + inUse, 0);
      },
      get waiting() {
        return use().reduce((sum, { waiting }) => sum + waiting, 0);
      },
    });
    return slots;
  }

  /** The timers of sweeps and governors go with `close`; whatever is left then is a leak. */
  end(): void {
    for (const slots of this.#toClose) slots.close();
    this.guard.check();
  }
}

export function useTransferWorld(): () => TransferWorld {
  let world = new TransferWorld();
  beforeEach(() => {
    world = new TransferWorld();
  });
  afterEach(() => world.end());
  return () => world;
}
