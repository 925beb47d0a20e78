/** `@slotkeeper/server/words`: words for people. It loads nothing of the service, so that a command starts quickly. */
export { blockedByWords, waitCause } from "@slotkeeper/protocol";
export { nearestFirst, nearMatch } from "./near-match.ts";
export { systemWords } from "./system-words.ts";
