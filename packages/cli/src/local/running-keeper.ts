import { checkFolder, findKeeper, keeperSocket } from "@slotkeeper/client/node/parts";

/** Returns the path of the keeper that runs, and starts none; `undefined` if none runs. */
export function runningKeeper(given: string | undefined): Promise<string | undefined> {
  const socket = keeperSocket(given);
  checkFolder(socket);
  return findKeeper(socket);
}
