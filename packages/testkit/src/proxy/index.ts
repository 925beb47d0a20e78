export { type Fault, FaultProxy, type SeenCall } from "./fault-proxy.ts";
export { type AnswerFilter, PostgresProxy, withoutNotifications } from "./postgres-proxy.ts";
export { TcpProxy } from "./tcp-proxy.ts";
