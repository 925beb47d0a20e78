/** `@slotkeeper/testkit/planted`: bugs that are planted on purpose, and which method finds them. */
export { type Finding, findPlanted, METHODS, type MethodName, type PlantedRow } from "./find-planted.ts";
export { PLANTED_BUGS, type PlantedBug } from "./planted-bugs.ts";
