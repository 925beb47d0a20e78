/** `@slotkeeper/testkit/planted`: bugs that are planted on purpose, and which method finds them. */
export { findPlanted, METHODS, type MethodName, type PlantedRow } from "./find-planted.ts";
export { type Finding, PLANTED_BUGS, type PlantedBug } from "./planted-bugs.ts";
