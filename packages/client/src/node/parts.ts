/** The parts of `localClient` that the command `slotkeeper` uses, too. */
export { LEASE_FD } from "./descriptors.ts";
export { claimGeneration, findKeeper, isListening } from "./generation.ts";
export { Holder } from "./holder.ts";
export { KeeperError } from "./keeper-error.ts";
export { type KeeperAnswer, type KeeperCommand, KeeperLink, NODE_OPTIONS, PROTOCOL } from "./keeper-link.ts";
export { checkFolder, FILE_SUFFIX, isNetworkType, isOwnFile, keeperSocket } from "./socket-folder.ts";
