/**
 * `@slotkeeper/server/node-crypto`: digests and random names by `node:crypto`, for runtimes that have it, such as Workers
 * with `nodejs_compat`. Nothing random is made while the module loads.
 */
export { NODE_DIGESTS, newRequestId, newSecret, newSessionId, newTokenKey } from "./platform/node-crypto.ts";
