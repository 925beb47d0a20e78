/** `@slotkeeper/testkit/upstream`: a server that allows a limited number of requests at a time. */
export { startUpstream } from "./limited-upstream.ts";
