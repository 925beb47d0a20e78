/**
 * Finds the keeper of a socket. A keeper listens as `SOCKET.1`, and the next one as `SOCKET.2`: each claims a number that
 * no other has.
 */
import { generationsOf, isListening } from "./generation.ts";

/** The descriptor with which a command holds its slot. The keeper must not inherit it from a command. */
export const LEASE_FD = 77;

/** The keeper has little to do: a small heap is enough for it, and the compilers would only take memory. */
export const NODE_OPTIONS = ["--max-semi-space-size=1", "--optimize-for-size", "--no-opt", "--no-sparkplug"] as const;

/** The command line of `slotkeeper`, without arguments. */
export type KeeperCommand = readonly [file: string, ...args: string[]];

/** The path of a keeper that is alive, or `undefined`. */
export async function findKeeper(socket: string): Promise<string | undefined> {
  for (const path of candidates(socket)) if (await isListening(path)) return path;
  return undefined;
}

/** The path that a keeper has most probably, without a look whether it is alive. */
export function likelyKeeper(socket: string): string | undefined {
  return candidates(socket)[0];
}

/** The newest first. */
function candidates(socket: string): string[] {
  return generationsOf(socket)
    .sort((a, b) => b - a)
    .map((number) => `${socket}.${number}`);
}
