import { isAbsolute, relative } from "node:path";
import type { KeeperLink } from "@slotkeeper/client/node/parts";
import type { LocalName } from "@slotkeeper/server/keeper";
import type { SlotUse } from "../wait-words.ts";
import { answerOf } from "./wait.ts";

/** The answer of the keeper about the names in use. */
export interface LocalState {
  readonly names: readonly LocalName[];
}

/** Who holds and who waits for the slots of a name now; `undefined` if none does. */
export async function usersOf(link: KeeperLink, name: string, signal?: AbortSignal): Promise<LocalName | undefined> {
  const path = `/api/v0/local?name=${encodeURIComponent(`sem:${name}`)}`;
  const { names } = answerOf(await link.call({ path, signal })) as LocalState;
  return names[0];
}

/** The same, as the line of a wait shows it: the longest hold first. */
export async function lookAt(link: KeeperLink, name: string): Promise<SlotUse | undefined> {
  const users = await usersOf(link, name);
  if (users === undefined) return undefined;
  const holders = users.holders
    .map(({ bucket, forMs }) => ({ bucket: shownBucket(bucket), heldMs: forMs }))
    .sort((a, b) => b.heldMs - a.heldMs);
  return { inUse: users.holders.length, slots: users.slots, holders };
}

/** A repository is shown from here, if that is shorter. */
export function shownBucket(bucket: string): string {
  if (!isAbsolute(bucket)) return bucket;
  const fromHere = fromWorkingDirectory(bucket);
  if (fromHere === "") return "this repository";
  return fromHere.length < bucket.length ? fromHere : bucket;
}

function fromWorkingDirectory(path: string): string {
  try {
    return relative(process.cwd(), path);
  } catch {
    // It was removed.
    return path;
  }
}

export function capacityText(name: string, asked: number, use: SlotUse | undefined): string {
  const by = use?.holders[0] === undefined ? "" : `, set by ${use.holders[0].bucket}`;
  const now = use === undefined ? "another number of slots" : `${use.slots} ${use.slots === 1 ? "slot" : "slots"}`;
  return `"${name}" is in use with ${now}${by}; this command asks for ${asked}. Leave --slots out to use it as it is.`;
}

const FLAG_OF: { readonly [field: string]: string } = { bucket: "--as", limit: "--slots", width: "--width" };

/** What the keeper says about a field, in the words of the command. */
export function usageText(name: string, sentence: string): string {
  return sentence
    .replaceAll(/^Expected `(\w+)`/gm, (_, field: string) => `Expected ${FLAG_OF[field] ?? field}`)
    .replace(", the number of slots of the host,", `, the number of slots of "${name}",`);
}
