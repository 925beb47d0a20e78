import type { ServiceInstances } from "@slotkeeper/protocol";
import type { InstanceAbout, InstanceView } from "@slotkeeper/queue";
import type { StoreReader } from "./store-reader.ts";

/** What a `Presence` needs. */
export interface PresenceInit {
  readonly reader: StoreReader;
  readonly instance: string;
  readonly about: () => InstanceAbout;
}

/** The live instances, from the store. The engine's beat keeps this one alive there. */
export class Presence {
  readonly #init: PresenceInit;

  constructor(init: PresenceInit) {
    this.#init = init;
  }

  async read(): Promise<Omit<ServiceInstances, "at">> {
    const { reader, instance } = this.#init;
    const views = await this.#views();
    const instances = views
      .map((view) => ({
        instance: view.instance,
        isThis: view.instance === instance,
        seenAgoMs: view.seenAgoMs,
        ...view.about,
      }))
      .sort((a, b) => (a.instance < b.instance ? -1 : 1));
    const hasDrift = distinctOf(views, "configHash").length > 1;
    return { isFleet: reader.store.isShared, hasDrift, instances };
  }

  /** The sums of the counts of all live instances. */
  async sums(): Promise<{ readonly instances: number; readonly granted: number; readonly rejected: number }> {
    const views = await this.#views();
    const sumOf = (key: string) => views.reduce((sum, { about }) => sum + (Number(about[key]) || 0), 0);
    return { instances: views.length, granted: sumOf("granted"), rejected: sumOf("rejected") };
  }

  /** This instance is always in the list, with its current values, even if the store does not have it. */
  async #views(): Promise<readonly InstanceView[]> {
    const { reader, instance, about } = this.#init;
    const others = (await reader.store.instances()).filter((view) => view.instance !== instance);
    return [{ instance, seenAgoMs: 0, about: about() }, ...others];
  }
}

/** The distinct values of one field over all instances. More than one means that they differ. */
export function distinctOf(views: readonly Pick<InstanceView, "about">[], field: string): readonly unknown[] {
  return [...new Set(views.map(({ about }) => about[field]))];
}
