import type { ServiceInstances } from "@slotkeeper/protocol";
import type { InstanceAbout, SlotStore } from "@slotkeeper/queue";
import type { Clock } from "slotkeeper";
import type { StoreReader } from "./store-reader.ts";

const BEAT_MS = 10_000;
/** Two beats may be missed. */
const TTL_MS = 30_000;

export interface PresenceInit {
  readonly store: SlotStore;
  readonly reader: StoreReader;
  readonly clock: Clock;
  readonly instance: string;
  readonly about: () => InstanceAbout;
  readonly onError: (error: unknown) => void;
}

/** Says to the fleet, through the store, that this instance lives; and reads who else does. */
export class Presence {
  readonly #init: PresenceInit;
  #timer: unknown;

  constructor(init: PresenceInit) {
    this.#init = init;
  }

  start(): void {
    const { store, clock } = this.#init;
    if (store.announce === undefined) return;
    void this.#announce(TTL_MS);
    this.#timer = clock.setTimer(() => this.start(), BEAT_MS);
  }

  /** Others need not wait for the notice to run out. */
  async stop(): Promise<void> {
    this.#init.clock.clearTimer(this.#timer);
    await this.#announce(0);
  }

  /** This instance is always among them, whatever the store says. */
  async read(): Promise<Omit<ServiceInstances, "at">> {
    const { reader, instance, about } = this.#init;
    const told = await reader.instances();
    const others = (told ?? []).filter((view) => view.instance !== instance);
    const views = [{ instance, seenAgoMs: 0, about: about() }, ...others];
    const instances = views
      .map((view) => ({
        instance: view.instance,
        isThis: view.instance === instance,
        seenAgoMs: view.seenAgoMs,
        ...view.about,
      }))
      .sort((a, b) => (a.instance < b.instance ? -1 : 1));
    const hasDrift = new Set(views.map((view) => view.about["configHash"])).size > 1;
    return { isFleet: told !== undefined, hasDrift, instances };
  }

  async #announce(ttlMs: number): Promise<void> {
    const { store, instance, about, onError } = this.#init;
    try {
      await store.announce?.({ instance, ttlMs, about: about() });
    } catch (error) {
      onError(error);
    }
  }
}
