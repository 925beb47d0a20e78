/**
 * The slots of this machine under which this process runs: `SLOTKEEPER_HELD` in the environment of a command names them.
 *
 * UNDER1 A command gets the descriptor of its own slot and those of all slots under which `exec` itself runs, each under
 *     a number of its own. So an outer slot lasts until all that was started under it has ended, too.
 * UNDER2 The variable only names slots. A command may outlive its slot, and any program may set the variable: a command
 *     runs under a slot only if the keeper says that this slot is held now.
 */
import { existsSync, fstatSync } from "node:fs";
import { basename } from "node:path";
import { type KeeperLink, LEASE_FD } from "@slotkeeper/client/node/parts";

/** A slot under which this process runs, or ran. */
export interface HeldSlot {
  /** The path of the socket of its holder, which no other slot has. */
  readonly holder: string;
  /** The descriptor of that socket. Missing with `--close`, and if a program on the way here has closed it. */
  readonly descriptor?: number;
}

export const HELD_VARIABLE = "SLOTKEEPER_HELD";

/** Without those that have surely ended. A variable that another program has set counts as empty. */
export function heldSlots(): HeldSlot[] {
  try {
    const held = JSON.parse(process.env[HELD_VARIABLE] ?? "[]") as unknown;
    return Array.isArray(held) ? held.map(withOpenDescriptor).filter(mayBeHeld) : [];
  } catch {
    return [];
  }
}

function withOpenDescriptor(slot: unknown): HeldSlot {
  const { holder = "", descriptor = 0 } = Object(slot) as Partial<HeldSlot>;
  return { holder, ...(descriptor >= LEASE_FD && isSocket(descriptor) && { descriptor }) };
}

/** The file of the socket is removed when its holder has ended. */
function mayBeHeld({ holder, descriptor }: HeldSlot): boolean {
  return typeof holder === "string" && holder !== "" && (descriptor !== undefined || existsSync(holder));
}

/** Whether one of the slots is one of this name, and held now (UNDER2). */
export async function isUnder(
  slots: readonly HeldSlot[],
  { link, name, signal }: { readonly link: KeeperLink; readonly name: string; readonly signal: AbortSignal },
): Promise<boolean> {
  if (slots.length === 0) return false;
  const { usersOf } = await import("./use.ts");
  const { holders = [] } = (await usersOf(link, name, signal)) ?? {};
  // Only the name of the file counts: a container may have the folder at another place.
  const own = new Set(slots.map(({ holder }) => basename(holder)));
  return holders.some(({ socket }) => own.has(basename(socket)));
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
