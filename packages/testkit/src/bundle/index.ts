/** `@slotkeeper/testkit/bundle`: code that uses the packages, from their sources, for hosts that are not the test process. */
export { bundle } from "./bundle.ts";
