/** `@slotkeeper/client/node`: slots on one machine, without a service. */
export { KeeperError } from "./keeper-error.ts";
export type { KeeperCommand } from "./keeper-link.ts";
export { type LocalClientOptions, localClient } from "./local-client.ts";
