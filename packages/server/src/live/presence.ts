import type { ServiceInstances } from "@slotkeeper/protocol";
import type { InstanceAbout } from "@slotkeeper/queue";
import type { StoreReader } from "./store-reader.ts";

export interface PresenceInit {
  readonly reader: StoreReader;
  readonly instance: string;
  readonly about: () => InstanceAbout;
}

/** Which instances live, as the store has it. The engine's heartbeat says that this one does. */
export class Presence {
  readonly #init: PresenceInit;

  constructor(init: PresenceInit) {
    this.#init = init;
  }

  /** This instance is always among them, as it is now, whatever the store says. */
  async read(): Promise<Omit<ServiceInstances, "at">> {
    const { reader, instance, about } = this.#init;
    const others = (await reader.instances()).filter((view) => view.instance !== instance);
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
    return { isFleet: reader.isShared, hasDrift, instances };
  }
}
