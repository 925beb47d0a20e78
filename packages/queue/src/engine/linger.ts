import type { Book } from "../book/book.ts";
import type { Input } from "../inputs.ts";
import type { EngineContext } from "./context.ts";

/** How long an arrival waits for company. A commit of its own would mostly conflict with those that hand slots over. */
const LINGER_MS = 20;
/** The same where sessions of its bucket wait already: those are granted first, so the arrival is not needed sooner. */
const LINGER_BEHIND_OWN_MS = 100;

/**
 * How long an input waits to be committed with others (CYCLE6); 0: it is committed at once. A session that was let in before is
 * moved at once: until then its slot may be offered to where it no longer is.
 */
export function lingerMs(input: Input, book: Book, { store, instance }: EngineContext): number {
  if (store.clock !== "shared" || input.kind !== "arrive" || input.isReturning === true) return 0;
  if (book.limits === undefined || book.free > 0) return 0;
  if (book.index.bucket(input.bucket)?.head !== undefined) return LINGER_BEHIND_OWN_MS;
  for (const other of book.index.instances) if (other !== instance) return LINGER_MS;
  return 0;
}
