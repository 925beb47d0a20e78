export { type Fault, FaultProxy, type SeenCall } from "./fault-proxy.ts";
