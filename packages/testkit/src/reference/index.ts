/** `@slotkeeper/testkit/reference`: the decision a second time, as a short program, and its comparison with the engine. */
export { compareHistory, type Difference, formatHistory, shrinkHistory } from "./compare.ts";
export { type Host, memoryHost, referenceHost, storedHost } from "./engine-host.ts";
export { type History, hotHistory, longHistory, randomHistory } from "./random-history.ts";
export { ReferenceBook } from "./reference-book.ts";
