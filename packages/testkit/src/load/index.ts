/** `@slotkeeper/testkit/load`: a scripted load against a running service. */
export { CONSTRAINED_HOST, CONSTRAINTS, demandOf } from "./constrained-host.ts";
export { fillQueue, holdOne, Load } from "./load.ts";
export type { LoadTarget } from "./load-client.ts";
export { CONSTRAINED_PLAN, DEMO_PLAN, type HostPlan, manyHosts } from "./load-plan.ts";
