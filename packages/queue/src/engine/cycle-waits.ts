import type { Book } from "../book/book.ts";
import { closesAt } from "../book/breaker.ts";
import { missingBudgets } from "../book/budgets.ts";
import { lineOfWaiter } from "../book/line.ts";
import type { WaiterRecord } from "../book/records.ts";
import type { Input } from "../inputs.ts";
import { RESERVED_MS, type Refusal } from "../store/host-store.ts";
import type { EngineContext } from "./context.ts";
import type { Host } from "./host.ts";

/** What a cycle waits for: other inputs (CYCLE6), a time (`nextMoment`), and the store (`StoreWait`). */

/**
 * How long an arrival waits for other inputs. A separate commit would usually conflict with the commits that hand over
 * slots.
 */
const LINGER_MS = 20;
/** The same if sessions of its line already wait: they go first, so the arrival is not urgent. */
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
  if (input.kind === "release") return isAlone && book.size("waiter") === 0 ? LINGER_RELEASE_MS : 0;
  if (input.kind !== "arrive" || input.isReturning === true || book.canGrant) return 0;
  if (book.index.line(lineOfWaiter(input))?.head !== undefined) return LINGER_BEHIND_OWN_MS;
  for (const other of book.index.instances) if (other !== instance) return LINGER_MS;
  return 0;
}

/** When a time is reached, the instance of the best-ranked waiter acts first. The other instances act this much later. */
const OTHERS_WAIT_MS = 20;

/** The next time at which the state of a host may change without an input. Undefined: the book has no such time. */
export function nextMoment({ hasPending, cache }: Host, engine: EngineContext): number | undefined {
  const { book } = cache;
  if (book.limits === undefined || (!hasPending && book.size("waiter") === 0)) return undefined;
  let first = Number.POSITIVE_INFINITY;
  for (const at of hasPending ? moments(book, engine.options.collectMs) : ownMoments(book)) {
    if (at !== undefined && at > book.now && at < first) first = at;
  }
  if (first === Number.POSITIVE_INFINITY) return undefined;
  return hasBestWaiter(book, engine.instance) ? first : first + OTHERS_WAIT_MS;
}

function moments(book: Book, collectMs: number): (number | undefined)[] {
  const { index, head } = book;
  const first = firstOf(book);
  return [
    // While it waits, no other waiter is granted.
    first?.deadlineAt,
    first?.awayAt && first.awayAt + collectMs,
    first && Math.max(...missingBudgets(book, first).map(({ at }) => at)),
    ...classMoments(book, collectMs),
    index.endings.nextLease?.endsAt,
    index.endings.nextOffer?.lapsesAt,
    book.free > 0 ? index.nextCoolAt : undefined,
    book.free > 0 ? index.ladder?.nextAt : undefined,
    closesAt(head.breaker),
    book.order.nextMoment(book),
  ];
}

/** A waiter that the ceiling of its class has no room for may have to leave. */
function classMoments(book: Book, collectMs: number): (number | undefined)[] {
  const over = book.free > 0 ? book.order.overCeiling(book) : [];
  return over.flatMap(({ waiter: { deadlineAt, awayAt } }) => [deadlineAt, awayAt && awayAt + collectMs]);
}

/**
 * No session of this instance waits, only those of others. They may not know of its last commit yet: a released slot
 * that ends soon, or an offer.
 */
function ownMoments({ index }: Book): (number | undefined)[] {
  const { nextLease, nextOffer } = index.endings;
  return [nextLease?.isReleased === true ? nextLease.endsAt : undefined, nextOffer?.lapsesAt];
}

function firstOf(book: Book): WaiterRecord | undefined {
  const { first } = book.head;
  return first === undefined ? undefined : book.get("waiter", first);
}

function hasBestWaiter(book: Book, instance: string): boolean {
  const { order } = book;
  const first = firstOf(book) ?? (order.next(book) ?? order.first(book))?.head?.record;
  return first === undefined || first.instance === instance;
}

/** After this time without an answer, sessions report that they wait for the store. */
export const SILENT_MS = 1_000;
/** CYCLE7: the pause after the second consecutive refusal. Each further one doubles it, up to the poll interval. */
const REFUSED_MS = 20;

/**
 * How a cycle waits for the store: for an answer, after a refusal, and while the store fails. It waits on a timer of its
 * own and not on the agenda, whose times are the store's: an answer may set those back, and the wait would be longer.
 */
export class StoreWait {
  readonly #host: Host;
  readonly #engine: EngineContext;
  /** Ends the pause. */
  #resume: (() => void) | undefined;
  /** The pause lets another instance commit, because the store has reserved the next commit for it. */
  #isYielding = false;
  #timer: unknown;

  constructor(host: Host, engine: EngineContext) {
    this.#host = host;
    this.#engine = engine;
  }

  /** CYCLE4: retries every poll interval until the store answers. */
  async untilAnswered<T>(operation: string, first: Promise<T>, again: () => T | Promise<T>): Promise<T> {
    for (let answer: T | Promise<T> = first; ; answer = again()) {
      try {
        const answered = await this.#watched(answer);
        this.#host.storeAnswered(true);
        return answered;
      } catch (error) {
        this.#engine.emit({ type: "store-error", host: this.#host.key, operation, error });
        this.#host.storeAnswered(false);
        await this.#pause(this.#engine.options.pollIntervalMs);
      }
    }
  }

  /** Call before a refused commit is retried. `refusals`: the number of consecutive refusals of CYCLE7. */
  async afterRefusal(reason: Refusal, refusals: number): Promise<void> {
    if (reason === "reserved") {
      this.#isYielding = true;
      await this.#pause(RESERVED_MS / 2);
      this.#isYielding = false;
    } else if (refusals > 1) {
      const ms = REFUSED_MS * 2 ** (refusals - 2);
      await this.#pause(Math.min(ms, this.#engine.options.pollIntervalMs));
    }
  }

  /** Another instance has committed, so its reservation is over. */
  othersCommitted(): void {
    if (this.#isYielding) this.#endPause();
  }

  close(): void {
    if (this.#timer !== undefined) this.#engine.time.clearTimer(this.#timer);
    this.#timer = undefined;
  }

  /** CYCLE8. */
  async #watched<T>(answer: T | Promise<T>): Promise<T> {
    this.#timer = this.#engine.time.setTimer(() => this.#host.storeAnswered(false), SILENT_MS);
    try {
      return await answer;
    } finally {
      this.close();
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve;
      this.#timer = this.#engine.time.setTimer(() => this.#endPause(), ms);
    });
  }

  #endPause(): void {
    this.close();
    this.#resume?.();
    this.#resume = undefined;
  }
}
