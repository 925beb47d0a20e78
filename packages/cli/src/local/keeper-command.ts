import { fileURLToPath } from "node:url";
import type { KeeperCommand } from "@slotkeeper/client/node/parts";

/** Starts the keeper of the same version. The path is the same from `src` and from `dist`. */
export function keeperCommand(): KeeperCommand {
  return [process.execPath, fileURLToPath(new URL("../../bin/slotkeeper.mjs", import.meta.url))];
}
