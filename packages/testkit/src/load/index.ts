/** `@slotkeeper/testkit/load`: a scripted load against a running service. */
export { fillQueue, holdOne, Load } from "./load.ts";
export type { LoadTarget } from "./load-client.ts";
export { DEMO_PLAN, type HostPlan, manyHosts } from "./load-plan.ts";
