import { fileURLToPath } from "node:url";
import { type KeeperCommand, NODE_OPTIONS } from "@slotkeeper/client/node/parts";

/** Starts the keeper of the same version. The path is the same from `src` and from `dist`. */
export function keeperCommand(): KeeperCommand {
  return [process.execPath, ...NODE_OPTIONS, fileURLToPath(new URL("../../bin/slotkeeper.mjs", import.meta.url))];
}
