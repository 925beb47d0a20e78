/** The parts of `localClient` that the command `slotkeeper` uses, too. */
export { findKeeper, type KeeperCommand, LEASE_FD, NODE_OPTIONS } from "./find-keeper.ts";
export { claimGeneration, isListening } from "./generation.ts";
export { Holder } from "./holder.ts";
export { KeeperError } from "./keeper-error.ts";
export { type KeeperAnswer, KeeperLink, PROTOCOL } from "./keeper-link.ts";
export { checkFolder, FILE_SUFFIX, isNetworkType, isOwnFile, keeperSocket } from "./socket-folder.ts";
