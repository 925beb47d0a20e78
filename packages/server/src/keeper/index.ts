/** `@slotkeeper/server/keeper`: the slots of one machine, for the processes of one user. */
export { Keeper, type KeeperInit } from "./keeper.ts";
export type { LocalHolder, LocalName, LocalUser } from "./view.ts";
