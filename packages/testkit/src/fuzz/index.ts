/** `@slotkeeper/testkit/fuzz`: random and damaged input for everything that takes input from outside. */
export { FUZZ_TARGETS, type FuzzReport, fuzz } from "./fuzz.ts";
export { FuzzFailure, type FuzzTarget } from "./fuzz-target.ts";
