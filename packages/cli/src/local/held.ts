/**
 * The slots of this machine under which this process runs: `SLOTKEEPER_HELD` in the environment of a command names them.
 *
 * HELD1  A command gets the descriptor of its own slot and those of all slots under which `exec` itself runs, each under
 *     a number of its own. So an outer slot lasts until all that was started under it has ended, too.
 */
import { fstatSync } from "node:fs";
import { LEASE_FD } from "@slotkeeper/client/node/parts";

/** A slot under which this process runs. */
export interface HeldSlot {
  readonly socket: string;
  /** In lower case, as the keeper compares names. */
  readonly name: string;
  /** The descriptor that keeps it. Missing with `--close`, and if a program on the way here has closed it. */
  readonly descriptor?: number;
}

export const HELD_VARIABLE = "SLOTKEEPER_HELD";

/** A variable that another program has set counts as empty. */
export function heldSlots(): HeldSlot[] {
  try {
    const held = JSON.parse(process.env[HELD_VARIABLE] ?? "[]") as unknown;
    return Array.isArray(held) ? held.filter((slot) => slot instanceof Object).map(withOpenDescriptor) : [];
  } catch {
    return [];
  }
}

function withOpenDescriptor({ descriptor, ...slot }: HeldSlot): HeldSlot {
  return descriptor !== undefined && descriptor >= LEASE_FD && isSocket(descriptor) ? { ...slot, descriptor } : slot;
}

function isSocket(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).isSocket();
  } catch {
    return false;
  }
}

/** The descriptors of the slots, by the number that a command gets: the same as here. */
export function descriptorsOf(slots: readonly HeldSlot[]): Map<number, number> {
  return new Map(slots.flatMap(({ descriptor: fd }) => (fd === undefined ? [] : [[fd, fd]])));
}

/** The number for the descriptor of another slot. */
export function freeNumber(descriptors: ReadonlyMap<number, number>): number {
  let number = LEASE_FD;
  while (descriptors.has(number)) number++;
  return number;
}
