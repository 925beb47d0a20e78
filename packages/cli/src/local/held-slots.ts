/** The slots of this machine under which this process runs, as its environment lists them. */
export interface HeldSlot {
  readonly socket: string;
  /** In lower case, as the keeper compares names. */
  readonly name: string;
}

export const HELD_VARIABLE = "SLOTKEEPER_HELD";

export function heldSlots(): HeldSlot[] {
  try {
    return JSON.parse(process.env[HELD_VARIABLE] ?? "[]") as HeldSlot[];
  } catch {
    return [];
  }
}
