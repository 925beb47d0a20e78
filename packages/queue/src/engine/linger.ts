import type { Book } from "../book/book.ts";
import type { Input } from "../inputs.ts";
import type { EngineContext } from "./context.ts";

/**
 * How long an arrival waits for other inputs. A separate commit would usually conflict with the commits that hand over
 * slots.
 */
const LINGER_MS = 20;
/** The same if sessions of its bucket already wait: they go first, so the arrival is not urgent. */
const LINGER_BEHIND_OWN_MS = 100;

/**
 * How long an input waits to be committed with others (CYCLE6). 0: it is committed immediately. A session that another
 * instance had is moved immediately: until then, an offer may go to the wrong instance.
 */
export function lingerMs(input: Input, book: Book, { store, instance }: EngineContext): number {
  if (store.clock !== "shared" || input.kind !== "arrive" || input.isReturning === true) return 0;
  if (book.limits === undefined || book.free > 0) return 0;
  if (book.index.bucket(input.bucket)?.head !== undefined) return LINGER_BEHIND_OWN_MS;
  for (const other of book.index.instances) if (other !== instance) return LINGER_MS;
  return 0;
}
