import type { Book } from "../book/book.ts";
import { lineOfWaiter } from "../book/line-name.ts";
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
 * How long a release waits at a host that no session waits for. A client that works through a list asks for its next
 * slot within this time, so its release and its next grant are one commit. Only a direct caller of the database could
 * use the slot earlier.
 */
const LINGER_RELEASE_MS = 2;

/**
 * How long an input waits to be committed with others (CYCLE6). 0: it is committed immediately. A session that another
 * instance had is moved immediately: until then, an offer may go to the wrong instance.
 */
export function lingerMs(input: Input, book: Book, { store, instance, isAlone }: EngineContext): number {
  if (!store.isShared || book.limits === undefined) return 0;
  if (input.kind === "release") return isAlone() && book.size("waiter") === 0 ? LINGER_RELEASE_MS : 0;
  if (input.kind !== "arrive" || input.isReturning === true || book.canGrant) return 0;
  if (book.index.bucket(lineOfWaiter(input))?.head !== undefined) return LINGER_BEHIND_OWN_MS;
  for (const other of book.index.instances) if (other !== instance) return LINGER_MS;
  return 0;
}
