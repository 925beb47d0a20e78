/** `@slotkeeper/testkit/fleet`: real processes of the service on a real database, with a balancer before them. */
export { commandIn, migrateBy, THIS_CHECKOUT } from "./checkout.ts";
export { cleanEnvironment } from "./clean-environment.ts";
export { Fleet, type FleetOptions } from "./fleet.ts";
export { RoundRobinProxy } from "./round-robin-proxy.ts";
export { addressOf, ServeProcess, type ServeProcessOptions } from "./serve-process.ts";
