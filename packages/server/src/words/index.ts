/** `@slotkeeper/server/words`: words for people. It loads nothing of the service, so that a command starts quickly. */
export { blockedByWords, refillWords, unitsOf, waitCause } from "@slotkeeper/protocol";
export { nearestFirst, nearMatch } from "./near-match.ts";
export { systemWords } from "./system-words.ts";
