/** `@slotkeeper/testkit/postgrest`: a stand-in for PostgREST in front of a test database. */
export { signJwt } from "./jwt.ts";
export { PostgrestStandIn, type PostgrestStandInOptions } from "./postgrest-stand-in.ts";
export { TestPostgrest } from "./test-postgrest.ts";
