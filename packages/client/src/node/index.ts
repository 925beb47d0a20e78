/** `@slotkeeper/client/node`: slots on one machine, without a service. */
export type { KeeperCommand } from "./find-keeper.ts";
export { KeeperError } from "./keeper-error.ts";
export { type LocalClientOptions, localClient } from "./local-client.ts";
