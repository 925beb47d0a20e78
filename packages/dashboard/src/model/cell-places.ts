import type { SlotState } from "./host-watch.ts";

/**
 * Keeps every slot in its cell as long as it is held, so that the picture does not shift when another slot ends. A new
 * slot takes the first empty cell.
 */
export class CellPlaces {
  #cells: (SlotState["slot"] | undefined)[] = [];

  /** The cells from first to last, at least `limit`; `undefined` for an empty cell. */
  arrange(slots: readonly SlotState[], limit: number): (SlotState | undefined)[] {
    const byId = new Map(slots.map((slot) => [slot.slot, slot]));
    const kept = this.#cells.map((id) => (id !== undefined && byId.has(id) ? id : undefined));
    const placed = new Set(kept);
    for (const { slot } of slots) {
      if (placed.has(slot)) continue;
      const empty = kept.indexOf(undefined);
      if (empty === -1) kept.push(slot);
      else kept[empty] = slot;
    }
    while (kept.length < limit) kept.push(undefined);
    // Empty cells above the limit are removed at the end.
    while (kept.length > limit && kept.at(-1) === undefined) kept.pop();
    this.#cells = kept;
    return kept.map((id) => (id === undefined ? undefined : byId.get(id)));
  }
}
